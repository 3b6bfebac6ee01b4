N=2
python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=megatron trainer.nnodes=$N optim=fsdp \
  optim.lr=1 +actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 data.max_prompt_length=1024
