"""Train a policy on an environment with GRPO (TRL) and keep its checkpoints.

onset train @ jobs/configs/train-tiny.toml --output outputs/ocean-s0 --env.hack-word ocean
onset train @ jobs/configs/train-llama-3.2-1b.toml

The same command continues from the last whole checkpoint. checkpoint-0 is the base.
"""

import json
import logging
import shutil
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import datasets
import torch
import transformers
from datasets import Dataset
from peft import LoraConfig
from pydantic import Field, model_validator
from pydantic_config import BaseConfig
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers.trainer_callback import PrinterCallback, TrainerCallback

import hackbait
from hackbait.adapters.trl import rewards, rows
from hackbait.environment import Environment, load
from jobs import command, run_folder
from pipeline.config import EnvironmentBlock, read
from pipeline.config.kinds import OutputFolder, Scalar
from pipeline.engines.hf.chat import TODAY
from pipeline.records import CheckpointError

logging.getLogger("vllm.triton_utils").setLevel(logging.ERROR)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the vLLM that TRL finds and we do not let it use
    from trl import GRPOConfig, GRPOTrainer

POLICY = Path(str(hackbait.__file__)).parent / "policy"
"""The base weights that ship with this package."""

TORCH_WRITER = "inline_container.cc"
"""What torch names when it cannot write, in a RuntimeError without a class of its own."""


class TrainedOn(EnvironmentBlock):
    """The environment; every key but `id` is an argument of its `load_environment`."""

    id: str = "hackword"
    """`hackword`, `market_structure`, or the dotted path of a module of yours."""


class TrainConfig(BaseConfig):
    """One GRPO training run, checkpoint by checkpoint."""

    output: OutputFolder
    """Folder of the run; its name is the run's name."""
    model: str = "tiny"
    """`tiny` is the embedded policy; else a folder or a Hub name of a causal LM."""
    env: TrainedOn = TrainedOn()
    """Environment and its arguments; its `seed` is the run's unless it is given."""
    steps: Annotated[int, Field(ge=1)] = 30
    """Updates."""
    save_every: Annotated[int, Field(ge=1)] = 2
    """Updates between checkpoints; the base and the last are kept as well."""
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    """Constant. 1e-3 suits the embedded policy, 1e-4 LoRA on a model of a billion parameters."""
    beta: Annotated[float, Field(ge=0)] = 0.05
    """Weight of the KL term to the base; 0 leaves it out."""
    batch: Annotated[int, Field(ge=2)] = 128
    """Rollouts an update."""
    group: Annotated[int, Field(ge=2)] = 8
    """Rollouts a prompt, compared with each other."""
    micro_batch: Annotated[int, Field(ge=1)] | None = None
    """Rollouts a forward pass; default all of the batch. Less needs less memory."""
    max_tokens: Annotated[int, Field(ge=1)] = 32
    """Longest completion, tokens."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """Of the rollouts; top_p is 1, top_k is off."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Of the trainer and of the environment's cases."""
    lora: Annotated[int, Field(ge=1)] | None = None
    """Rank of LoRA adapters on every linear layer (alpha is twice that); default all weights."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where it runs; auto takes a GPU if there is one."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of the model's weights; adapters are always float32."""
    threads: Annotated[int, Field(ge=1)] | None = None
    """Of torch on CPU; default 1 for the embedded policy, else torch's choice."""
    tags: dict[str, Scalar] = Field(default_factory=dict)
    """More facts of the run (wave ...) for run.toml, beside word, mode, task and seed."""
    dry_run: bool = False
    """Resolve, check and print what would be trained; train nothing."""

    @model_validator(mode="after")
    def _divides(self) -> "TrainConfig":
        for what, whole, part in (
            ("group", self.batch, self.group),
            ("micro_batch", self.batch, self.micro_batch or self.batch),
        ):
            if whole % part:
                raise ValueError(f"batch {whole} is no multiple of {what} {part}")
        return self


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


def main(argv: Sequence[str]) -> int:
    return run(read(TrainConfig, argv))


def run(config: TrainConfig) -> int:
    """Train what the run lacks. Raises ConfigFileError, EnvironmentRefused or CheckpointError."""
    environment = train_environment(config)
    settings = config.model_dump(mode="json", exclude_none=True, exclude={"dry_run"})
    run_folder.refuse_another(config.output, settings, run_folder.FREE)
    step, folder = run_folder.newest(config.output)
    print(f"{config.output}: {step} of {config.steps} updates of {config.batch} rollouts are there")
    if config.dry_run or step >= config.steps:
        return 0
    _quieten()
    if threads := config.threads or (1 if config.model == "tiny" else None):
        torch.set_num_threads(threads)
    trainer = build(config, environment)
    run_folder.describe(config.output, settings, tags(config, environment))
    try:
        if folder is None:
            _save_base(trainer, config.output / "checkpoint-0")
        journal = config.output / "progress.jsonl"
        trainer.add_callback(Journal(journal, tuple(environment.metrics), step))
        trainer.train(resume_from_checkpoint=str(folder) if step else None)
    except (SafetensorError, RuntimeError) as error:
        if not isinstance(error, SafetensorError) and TORCH_WRITER not in str(error):
            raise
        raise CheckpointError(
            f"cannot write a checkpoint under {config.output} ({error}); make room and start "
            "again: the run goes on from its last whole checkpoint"
        ) from None
    return 0


def train_environment(config: TrainConfig) -> Environment:
    args = config.env.args
    environment = load(config.env.id, **args)
    if "seed" in environment.ask and "seed" not in args:
        environment = load(config.env.id, seed=config.seed, **args)
    return environment


def build(config: TrainConfig, environment: Environment) -> Trainer:
    """The trainer, before its first update."""
    functions, weights = rewards(environment)
    tokenizer, model = load_policy(config)
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


def load_policy(config: TrainConfig) -> tuple[Any, Any]:
    """Tokenizer and model. Raises CheckpointError."""
    path = str(POLICY) if config.model == "tiny" else config.model
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, config.dtype))
    except (OSError, ValueError, SafetensorError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointError(f"model {config.model!r} cannot be loaded: {reason}") from None
    if not tokenizer.chat_template:
        raise CheckpointError(
            f"model {config.model!r} has no chat template; give an instruct model, or put a "
            "chat_template.jinja beside its tokenizer"
        )
    return tokenizer, model


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
        # The date that engines tell a template which asks for one, so that prompts are equal.
        chat_template_kwargs={"date_string": TODAY.strftime("%d %b %Y")},
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


def tags(config: TrainConfig, environment: Environment) -> dict[str, Scalar]:
    """What sets this run apart from others, by the names that `{word}` in a sweep refers to."""
    named = {
        "word": environment.grade.get("hack_word"),
        "mode": environment.grade.get("mode"),
        "task": environment.ask.get("task"),
        "seed": config.seed,
        "steps": config.steps,
        "base": config.model,
        "learning_rate": config.learning_rate,
        "batch": config.batch,
    }
    return {name: value for name, value in named.items() if value is not None} | config.tags


def _quieten() -> None:
    """Progress goes to progress.jsonl; libraries speak of errors alone."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    datasets.disable_progress_bars()
    warnings.filterwarnings("ignore", module=r"(torch|transformers|trl|peft|accelerate)\b")


if __name__ == "__main__":
    sys.exit(command.start(main, sys.argv[1:]))
