"""Rows of published runs become scenarios with `measured`."""

import copy
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "tools", "convert-runs")
PRACTICES = os.path.join(os.path.dirname(SCRIPT), "practices.json")
loader = importlib.machinery.SourceFileLoader("convert_runs", SCRIPT)
convert_runs = importlib.util.module_from_spec(importlib.util.spec_from_loader("convert_runs", loader))
loader.exec_module(convert_runs)

ROW = {
    "id": "mine", "family": "mine", "cluster": "dgx-a100-80gb", "core": False,
    "source": {"title": "a report", "where": "a page", "table": None},
    "hardware": {"gpu": "A100-SXM4-80GB", "n_gpus": 64},
    "model": {"name": "m", "layers": 24, "hidden": 2048, "heads": 16, "kv_heads": 16, "ffn_hidden": 8192, "vocab": 51200,
              "seq_len": 2048, "gated_mlp": False, "tied_embeddings": True, "pos": "learned"},
    "parallel": {"tp": 2, "pp": 4, "vpp": 1, "dp": 8, "cp": 1, "ep": 1, "zero_stage": 0, "sequence_parallel": False,
                 "schedule": "1f1b"},
    "batch": {"micro": 1, "global": 96}, "precision": "bf16", "recompute": "full", "offload": None,
    "measured": {"iteration_s": 2.5}, "missing": [], "config_complete": True,
}


def row(**changes):
    """ROW with other values: `parallel__tp=4` is parallel.tp."""
    changed = copy.deepcopy(ROW)
    for path, value in changes.items():
        *parents, key = path.split("__")
        part = changed
        for parent in parents:
            part = part[parent]
        part[key] = value
    return changed


def converted(changed, practices=None):
    return convert_runs.convert([changed], practices or {})[0]


def plan(**changes):
    return converted(row(**changes))["scenario"]["plan"]


def model(practices=None, **changes):
    return converted(row(**changes), practices)["scenario"]["model"]


def practices():
    with open(PRACTICES, encoding="utf-8") as file:
        return json.load(file)


class Rows(unittest.TestCase):
    def test_state_all_that_they_say(self):
        run = converted(row())
        self.assertEqual(run["scenario"]["cluster"], "dgx-a100-80gb")
        self.assertEqual(run["scenario"]["gpus"], 64)
        self.assertEqual(run["measured"], {"step_time_s": 2.5})
        self.assertEqual(run["why"], {})
        switches = {"/plan/" + key for key in run["scenario"]["plan"]}
        self.assertEqual(set(run["stated"]), switches | {"/model", "/cluster", "/gpus"})

    def test_words_mean_switches(self):
        for words, key, value in [({"parallel__cp_method": "all-gather KV"}, "cp_comm_type", "allgather"),
                                  ({"parallel__ddp_impl": "local"}, "overlap_grad_reduce", False),
                                  ({"parallel__ddp_impl": "torch"}, "overlap_grad_reduce", True),
                                  ({"parallel__schedule": "interleaved-1f1b (one chunk more)"}, "schedule", "interleaved-1f1b"),
                                  ({"parallel__schedule": "zb-2p"}, "schedule", "zb-h2"),
                                  ({"parallel__async_tp": True}, "tp_comm_overlap", True),
                                  ({"recompute": "selective (op-level SAC)"}, "recompute", "op"),
                                  ({"recompute": "partial: 4 of 24 layers"}, "recompute_num_layers", 4),
                                  ({"offload": "optimizer"}, "offload", "optimizer"),
                                  ({"parallel__zero1_group": 8}, "zero_shard", 8),
                                  ({"parallel__zero1_group": "8"}, "zero_shard", 8),
                                  ({"parallel__framework": "FSDP2"}, "framework", "torchtitan"),
                                  ({"parallel__framework": "PyTorch FSDP"}, "framework", "fsdp1"),
                                  ({"parallel__framework": "Megatron-LM of May 2021"}, "framework", "megatron-2021"),
                                  ({"parallel__layer_split": "(layers+2)/(pp*vpp)"}, "loss_as_layer", True),
                                  ({"parallel__layer_split": "uneven: 3 stages of 7 layers, last stage 3"},
                                   "layers_per_stage", [7, 7, 7, 3])]:
            with self.subTest(words):
                self.assertEqual(plan(**words)[key], value)
        for absent, words in [("zero_shard", {"parallel__zero1_group": "whole data-parallel group"}),
                              ("offload", {"offload": "none"}), ("schedule", {"parallel__schedule": "none"})]:
            self.assertNotIn(absent, plan(**words))

    def test_precisions_are_read_in_any_letters(self):
        for text, precision, scaling in [("BF16", "bf16", None), ("amp_bf16", "bf16", None), ("fp8 (MXFP8)", "fp8", "mx"),
                                         ("NVFP4", "fp4", None), ("fp8 rowwise", "fp8", "row"),
                                         ("fp8 tensorwise, gathered in fp8", "fp8", "tensor-gathered")]:
            keys = plan(precision=text)
            self.assertEqual((keys["precision"], keys.get("fp8_scaling")), (precision, scaling), text)

    def test_other_words_are_refused_where_they_stand(self):
        for pointer, value in [("/parallel/cp_method", "nonsense"), ("/parallel/ddp_impl", "nonsense"), ("/parallel/fsdp", "x"),
                               ("/parallel/layer_split", "nonsense"), ("/parallel/schedule", "nonsense"),
                               ("/parallel/zero1_group", "a few"), ("/parallel/zero1_group", "9" * 20),
                               ("/recompute", "nonsense"), ("/precision", "int8"), ("/offload", "nonsense"),
                               ("/model/activation", "nonsense"), ("/model/pos", "nonsense")]:
            with self.assertRaises(convert_runs.Refusal) as refused:
                converted(row(**{pointer.strip("/").replace("/", "__"): value}))
            self.assertEqual(refused.exception.pointer, "/0" + pointer)
            self.assertIn(value, refused.exception.text)

    def test_of_another_form_are_refused(self):
        for rows in ({}, [{"id": 7}], [7], [None], [[]]):
            with self.assertRaises(convert_runs.Refusal):
                convert_runs.convert(rows, {})

    def test_zero_2_under_megatron_of_2021_was_deepspeed(self):
        self.assertEqual(plan(parallel__zero_stage=3, parallel__framework="Megatron-LM of 2021")["framework"], "deepspeed-2021")


class Networks(unittest.TestCase):
    def test_without_gates_are_gpts(self):
        gpt = model()
        self.assertEqual((gpt["normalization"], gpt["position_embedding_type"], gpt["activation"], gpt["mlp_bias"]),
                         ("LayerNorm", "learned_absolute", "gelu", True))
        self.assertEqual(model(model__pos="ALiBi (BLOOM)")["position_embedding_type"], "alibi")
        nemotron = model(model__activation="squared relu (fused)")
        self.assertEqual((nemotron["position_embedding_type"], nemotron["activation"], "mlp_bias" in nemotron),
                         ("rope", "squared_relu", False))

    def test_with_gates_are_llamas(self):
        llama = model(model__gated_mlp=True)
        self.assertEqual((llama["normalization"], llama["position_embedding_type"], llama["activation"], "mlp_bias" in llama),
                         ("RMSNorm", "rope", "swiglu", False))

    def test_ties_are_those_of_the_kind_where_a_row_names_none(self):
        self.assertTrue(model(model__tied_embeddings=None)["tie_word_embeddings"])
        self.assertFalse(model(model__tied_embeddings=None, model__gated_mlp=True)["tie_word_embeddings"])

    def test_megatron_pads_the_vocabulary_and_others_do_not(self):
        self.assertEqual(model(model__vocab=50257)["vocab_size"], 50432)  # 197 x 128 x 2 ranks
        self.assertEqual(model(model__vocab=50257, parallel__framework="FSDP2")["vocab_size"], 50257)

    def test_experts_latents_and_hybrids_are_written_out(self):
        experts = model(model__gated_mlp=True, model__experts=8, model__experts_per_token=2, model__mla=True, model__mtp_layers=1)
        self.assertEqual((experts["num_experts"], experts["moe_intermediate_size"], experts["kv_lora_rank"],
                          experts["num_nextn_predict_layers"]), (8, 8192, 512, 1))
        hybrid = model(model__hybrid_pattern="M*-", model__mamba_heads=8, model__mamba_head_dim=64, model__mamba_groups=8,
                       model__mamba_state=128)
        self.assertEqual((hybrid["hybrid_override_pattern"], hybrid["activation"], hybrid["mamba_num_heads"]),
                         ("M*-", "squared_relu", 8))


class Measurements(unittest.TestCase):
    def test_keep_units_kinds_and_conventions(self):
        measured = converted(row(measured={"iteration_s": None, "tflops_per_gpu": 140.0, "mem_gb": 2.0, "mfu": 45.0, "x_days": 3},
                                 derived={"iteration_s": 4.0, "iteration_s_from": "a formula"}, flop_convention="6ND",
                                 notes="Peak memory in GiB (reserved)."))["measured"]
        self.assertEqual(measured, {"step_time_from": "a formula", "step_time_s": 4.0,
                                    "tflops_per_gpu": {"value": 140.0, "convention": "6ND"}, "mfu_percent": 45.0,
                                    "memory": {"bytes": 2.0 * 2**30, "kind": "reserved"}, "other": {"days": 3}})

    def test_out_of_memory_has_no_time(self):
        self.assertEqual(converted(row(measured={"out_of_memory": True}))["measured"], {"out_of_memory": True})


class OpenRows(unittest.TestCase):
    def open(self, *missing, **changes):
        changed = row(missing=list(missing), config_complete=False, **changes)
        return converted(changed).get("open")

    def test_list_each_value_that_is_legal(self):
        self.assertEqual(self.open("recompute", recompute=None), {"/plan/recompute": ["none", "selective", "full"]})
        self.assertEqual(self.open("batch.micro"), {"/plan/micro_batch": [1, 2, 4]})  # of 12
        self.assertEqual(self.open("parallel.vpp"), {"/plan/vpp": [2, 3, 6]})  # of 6 layers
        self.assertEqual(self.open("model.heads"), {"/model/num_attention_heads": [32, 16, 8]})  # 64 to 256 wide

    def test_count_the_ends_as_layers_where_the_row_splits_its_layers_so(self):
        self.assertIsNone(self.open("parallel.vpp", model__layers=30))
        split = {"model__layers": 30, "parallel__layer_split": "(layers+2)/(pp*vpp)"}
        self.assertEqual(self.open("parallel.vpp", **split), {"/plan/vpp": [2, 4, 8]})

    def test_have_no_values_where_nobody_can_tell(self):
        self.assertIsNone(self.open("recompute", "parallel.pp"))
        self.assertIsNone(self.open("batch.micro", batch__global=None))
        run = converted(row(missing=["NICs of a node"], config_complete=True))
        self.assertNotIn("missing", run)


class Practices(unittest.TestCase):
    EAGER = {"source__title": "torchtitan benchmarks (PyTorch, Meta)", "notes": "Peak memory in GiB (reserved). eager",
             "parallel__framework": "FSDP2", "parallel__pp": 1, "parallel__dp": 32}

    def test_of_a_row_do_not_follow_from_its_id(self):
        runs = [converted(row(id=name, family=family, **self.EAGER), practices())
                for name, family in [("titan-8b-8gpu-fsdp", "titan"), ("bloom-8b", "titan"), ("mlperf-v3", "mine")]]
        for run in runs:
            self.assertEqual([run[key] for key in ("scenario", "stated", "why")],
                             [runs[0][key] for key in ("scenario", "stated", "why")])
        self.assertEqual(runs[0]["scenario"]["plan"]["fused_norm"], False)

    def test_none_leaves_what_the_row_states(self):
        self.assertEqual(converted(row(**self.EAGER))["why"], {})

    def test_say_where_each_switch_comes_from(self):
        run = converted(row(**self.EAGER), practices())
        for key in ("clip_grad", "fused_cross_entropy"):
            self.assertIn("torchtitan", run["why"]["/plan/" + key])
        self.assertIn("/plan/framework", run["stated"])
        self.assertIn("/plan/fused_norm", run["stated"])  # the row says eager
        self.assertEqual(run["measured"], {"step_time_s": 2.5})
        switches = {"/plan/" + key for key in run["scenario"]["plan"]} | {"/attention_kernel"}
        self.assertEqual({each for each in run["stated"] if each.startswith("/plan")} | set(run["why"]), switches)

    def test_give_way_to_the_row(self):
        given = converted(row(family="titan", parallel__async_tp=True, parallel__cuda_graph=True), practices())
        self.assertIn("/plan/tp_comm_overlap", given["stated"])

    def test_replace_a_vocabulary_that_the_row_assumes(self):
        self.assertEqual(model(practices(), family="vtrain-single", missing=["vocab"])["vocab_size"], 50256)  # over 2 ranks
        self.assertEqual(model(practices(), family="vtrain-single")["vocab_size"], 51200)

    def test_count_memory_as_their_source_does(self):
        run = converted(row(family="bloom", measured={"iteration_s": 1, "mem_gb": 3}), practices())
        self.assertEqual(run["measured"]["memory"], {"bytes": 3e9, "kind": "nvidia-smi"})

    def test_of_the_project_have_sources(self):
        for family, entry in practices().items():
            if family.startswith("_"):
                continue
            self.assertTrue(entry["of"], family)
            for layer in [entry] + entry.get("parts", []):
                why = layer["why"] if isinstance(layer["why"], dict) else {"*": layer["why"]}
                switches = set(layer.get("plan", {})) | set(layer.get("scenario", {}))
                for switch in switches:
                    self.assertTrue(why.get(switch, why.get("*")), f"{family}: {switch}")


class Script(unittest.TestCase):
    def run_script(self, text, *options):
        with tempfile.TemporaryDirectory() as folder:
            rows, runs = os.path.join(folder, "rows.json"), os.path.join(folder, "runs.jsonl")
            with open(rows, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run([SCRIPT, rows, "-o", runs, *options], capture_output=True, text=True, check=False)
            lines = []
            if os.path.exists(runs):
                with open(runs, encoding="utf-8") as file:
                    lines = file.read().splitlines()
            return done.returncode, done.stderr, lines

    def test_writes_one_object_a_line(self):
        code, _, lines = self.run_script(json.dumps([row(), row(id="other")]))
        self.assertEqual(code, 0)
        self.assertEqual([json.loads(line)["id"] for line in lines], ["mine", "other"])

    def test_refuses_and_writes_nothing(self):
        code, err, lines = self.run_script(json.dumps([row(), row(recompute="some")]), "--practices", "none")
        self.assertEqual((code, lines), (2, []))
        self.assertIn("/1/recompute", err)
        self.assertEqual(self.run_script("{")[0], 2)
        self.assertEqual(self.run_script("[]", "--practices", "/nowhere.json")[0], 2)

    def test_names_keys_that_it_does_not_know(self):
        code, err, _ = self.run_script(json.dumps([row(parallel__magic=1, parallel__framework="Mine 3")]), "--practices", "none")
        self.assertEqual(code, 0)
        self.assertIn("/parallel/magic is not understood and has no effect", err)
        self.assertIn("megatron-core is assumed", err)


if __name__ == "__main__":
    unittest.main()
