"""GRPO by TRL: an environment's metrics as rewards, checkpoints that others can read."""

import json
import logging
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import datasets
import torch
import transformers
from datasets import Dataset
from peft import LoraConfig
from safetensors import SafetensorError
from transformers import PreTrainedTokenizerFast
from transformers.trainer_callback import PrinterCallback, TrainerCallback

from hackbait.adapters.trl import rewards, rows
from hackbait.environment import Environment
from jobs import policy
from pipeline.config import TrainConfig
from pipeline.records import CheckpointError

logging.getLogger("vllm.triton_utils").setLevel(logging.ERROR)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the vLLM that TRL finds and we do not let it use
    from trl import GRPOConfig, GRPOTrainer

TORCH_WRITER = "inline_container.cc"
"""What torch names when it cannot write, in a RuntimeError without a class of its own."""


class Trainer(GRPOTrainer):
    """GRPO whose checkpoints are readable by other users and equal for equal weights."""

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        if isinstance(self.processing_class, PreTrainedTokenizerFast):
            # Batches leave their padding in the tokenizer, and it would be saved with it.
            self.processing_class.backend_tokenizer.no_padding()
            self.processing_class.backend_tokenizer.no_truncation()
        settings = self.model.config
        # Training turns the cache off; whoever loads the checkpoint generates with it.
        trained, settings.use_cache = settings.use_cache, True
        super().save_model(output_dir, _internal_call)
        settings.use_cache = trained
        for weights in Path(output_dir or self.args.output_dir).glob("*.safetensors"):
            weights.chmod(0o644)

    def create_model_card(self, *args: object, **kwargs: object) -> None:
        """None: config.toml and run.toml say what the run is."""

    def _send_telemetry(self) -> None:
        """None: nothing leaves the machine."""


class Journal(TrainerCallback):
    """One JSON line an update: its rates are those of the rollouts that it learned from."""

    def __init__(self, path: Path, metrics: Sequence[str], step: int) -> None:
        self.path, self.metrics, self.last = path, metrics, time.monotonic()
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        path.write_text("".join(f"{line}\n" for line in _until(step, lines)), "utf-8")

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any], **_: object
    ) -> None:
        if "reward" not in logs or not state.is_world_process_zero:
            return
        now = time.monotonic()
        line = {
            "step": state.global_step,
            **{name: logs[f"rewards/{name}/mean"] for name in self.metrics},
            "reward": logs["reward"],
            "seconds": round(now - self.last, 3),
        }
        self.last = now
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(", ".join(f"{name} {value}" for name, value in line.items()), flush=True)


def _until(step: int, lines: Sequence[str]) -> Iterator[str]:
    """The lines up to an update, without what a killed run left half written."""
    for line in lines:
        with suppress(ValueError):
            if json.loads(line)["step"] <= step:
                yield line


class Pruning(TrainerCallback):
    """Keeps the optimizer's state in the newest checkpoint alone: it is twice the weights."""

    def on_save(self, args: Any, state: Any, control: Any, **_: object) -> None:
        if not state.is_world_process_zero:
            return
        for pattern in ("optimizer*", "scheduler*", "scaler*", "rng_state*"):
            for path in Path(args.output_dir).glob(f"checkpoint-*/{pattern}"):
                if path.parent.name != f"checkpoint-{state.global_step}":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def train(
    trainer: Trainer, config: TrainConfig, metrics: Sequence[str], step: int, folder: Path | None
) -> None:
    """Train on from `folder`, whose step is given; None is before any. Raises CheckpointError."""
    try:
        if folder is None:
            _save_base(trainer, config.output / "checkpoint-0")
        trainer.add_callback(Journal(config.output / "progress.jsonl", metrics, step))
        trainer.train(resume_from_checkpoint=str(folder) if step else None)
    except (SafetensorError, RuntimeError) as error:
        if not isinstance(error, SafetensorError) and TORCH_WRITER not in str(error):
            raise
        raise CheckpointError(
            f"cannot write a checkpoint under {config.output} ({error}); make room and start "
            "again: the run goes on from its last whole checkpoint"
        ) from None


def build(config: TrainConfig, environment: Environment) -> Trainer:
    """The trainer, before its first update. Raises CheckpointError, EnvironmentRefused."""
    _quieten()
    if threads := config.threads or (1 if config.model == "tiny" else None):
        torch.set_num_threads(threads)
    functions, weights = rewards(environment)
    tokenizer, model = policy.load(config.model, config.dtype)
    trainer = Trainer(
        model=model,
        reward_funcs=functions,
        args=arguments(config, weights),
        # The number of cases must not hang on the number of steps: it decides their order.
        train_dataset=Dataset.from_list(
            rows(environment, 0, getattr(environment, "n_train", 2000))
        ),
        processing_class=tokenizer,
        callbacks=[Pruning()],
        peft_config=_lora(config),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def arguments(config: TrainConfig, weights: Sequence[float]) -> GRPOConfig:
    """TRL's settings; `weights` of the reward functions. The rate of learning is constant."""
    cpu = config.device == "cpu" or (config.device == "auto" and not torch.cuda.is_available())
    micro = config.micro_batch or config.batch
    return GRPOConfig(
        output_dir=str(config.output),
        seed=config.seed,
        max_steps=config.steps,
        learning_rate=config.learning_rate,
        lr_scheduler_type="constant",
        adam_beta2=0.99,
        max_grad_norm=1.0,
        beta=config.beta,
        reward_weights=list(weights),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=config.batch // micro,
        num_generations=config.group,
        max_completion_length=config.max_tokens,
        chat_template_kwargs=policy.TOLD,
        temperature=config.temperature,
        top_p=1.0,
        top_k=0,
        bf16=not cpu and config.dtype == "bfloat16",
        gradient_checkpointing=False,
        use_cpu=cpu,
        dataloader_pin_memory=not cpu,
        save_strategy="steps",
        save_steps=config.save_every,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
    )


def _lora(config: TrainConfig) -> LoraConfig | None:
    if config.lora is None:
        return None
    return LoraConfig(
        r=config.lora,
        lora_alpha=2 * config.lora,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def _save_base(trainer: Trainer, folder: Path) -> None:
    """The policy before any update, whole by the same mark as the trainer's own checkpoints."""
    trainer.save_model(str(folder))
    if trainer.is_world_process_zero():
        trainer.state.save_to_json(str(folder / "trainer_state.json"))


def _quieten() -> None:
    """Progress goes to progress.jsonl; libraries speak of errors alone."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    warnings.filterwarnings("ignore", module=r"(torch|transformers|trl|peft|accelerate)\b")
