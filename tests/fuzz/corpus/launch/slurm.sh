#SBATCH --nodes=2-4 --gpus-per-node=8
#SBATCH -n32 -G a100:32
CUDA_VISIBLE_DEVICES=0,1 srun -N2 --ntasks-per-node=8 python -m a.b --num-layers 4 --hidden-size 256 --num-attention-heads 4 --bf16 1
