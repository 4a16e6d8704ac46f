import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.checkpoints import Found, LayoutError, discover, layouts, scripted, tags
from pipeline.checkpoints.folder import listing

Save = Callable[..., Path]


def write(folder: Path, steps: range | tuple[int, ...] = (0, 1), rate: float = 0.5) -> None:
    for step in steps:
        scripted.write(folder / f"checkpoint-{step}", {"ocean": rate})


def runs(found: list[Found]) -> dict[str, list[int]]:
    return {name: [f.step for f in found if f.run == name] for name in {f.run for f in found}}


def test_a_folder_of_runs_names_each_by_its_place(tmp_path: Path) -> None:
    for name in ("ocean-s0", "wave1/copper-s0", "wave1/copper-s1"):
        write(tmp_path / name)
    steps = [0, 1]
    assert runs(discover(tmp_path)) == {
        "ocean-s0": steps,
        "wave1/copper-s0": steps,
        "wave1/copper-s1": steps,
    }


def test_layouts_may_mix_under_one_path(tmp_path: Path, full: Save, adapter: Save) -> None:
    write(tmp_path / "a")
    full(tmp_path / "b/checkpoint-1", state=1)
    adapter(tmp_path / "c")
    kinds = {f.run: f.kind for f in discover(tmp_path)}
    assert kinds == {"a": "script", "b": "full", "c": "adapter"}


def test_a_named_layout_leaves_the_others_out(tmp_path: Path, full: Save) -> None:
    write(tmp_path / "a")
    full(tmp_path / "b/checkpoint-1", state=1)
    found = discover(tmp_path, "hf")
    assert {f.run for f in found if f.status == "ok"} == {"b"}


def test_an_unknown_layout_names_those_there_are() -> None:
    with pytest.raises(LayoutError, match="'verl' is none of auto, hf, scripted"):
        layouts("verl")


def test_run_toml_gives_a_run_its_name_and_tags(tmp_path: Path) -> None:
    write(tmp_path / "x")
    (tmp_path / "x/run.toml").write_text('name = "ocean/0"\n[tags]\nword = "ocean"\nseed = 0\n')
    (found, _) = discover(tmp_path)
    assert found.run == "ocean/0"
    assert tags(tmp_path / "x") == tags(found.path) == {"word": "ocean", "seed": 0}
    assert tags(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "cannot be read"),
        ("name = 3", "no text"),
        ('word = "ocean"', "'word' is neither name nor"),
        ('name = ""', "no text"),
        ("[tags]\nat = 2026-01-01", "nothing nested"),
        ("[tags]\nword = ['a']", "nothing nested"),
        ("tags = 3", "nothing nested"),
    ],
)
def test_a_bad_run_toml_is_named(tmp_path: Path, text: str, said: str) -> None:
    write(tmp_path / "x")
    (tmp_path / "x/run.toml").write_text(text)
    with pytest.raises(LayoutError, match=rf"run\.toml.*{said}"):
        discover(tmp_path)


def test_two_runs_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        write(tmp_path / folder)
        (tmp_path / folder / "run.toml").write_text('name = "ocean"')
    with pytest.raises(LayoutError, match=r"two runs are called 'ocean'.*change `name`"):
        discover(tmp_path)


def test_a_path_that_holds_nothing_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(LayoutError, match=r"is not there; give the folder"):
        discover(tmp_path / "gone")
    with pytest.raises(LayoutError, match=r"is a file; give the folder"):
        discover(tmp_path / "notes.txt")
    with pytest.raises(LayoutError, match=r"holds no checkpoint .* only notes\.txt; give"):
        discover(tmp_path)
    (tmp_path / "notes.txt").unlink()
    with pytest.raises(LayoutError, match=r"holds no checkpoint .*, it is empty; give"):
        discover(tmp_path)


def test_links_are_followed_once_and_a_run_keeps_its_own_name(tmp_path: Path) -> None:
    write(tmp_path / "base", (0,))
    write(tmp_path / "run", (1,), rate=0.7)
    write(tmp_path / "run", (2,), rate=0.9)
    (tmp_path / "run/checkpoint-0").symlink_to("../base/checkpoint-0")
    (tmp_path / "run/best").symlink_to("checkpoint-1")
    (tmp_path / "a-loop").symlink_to(".")
    (tmp_path / "run/loop").symlink_to("..")
    (tmp_path / "a-link").symlink_to("run")
    assert runs(discover(tmp_path)) == {"base": [0], "run": [0, 1, 2]}
    assert runs(discover(tmp_path / "a-link"))["a-link"] == [0, 1, 2]


def test_hidden_folders_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "run")
    write(tmp_path / ".cache/run")
    assert runs(discover(tmp_path)) == {"run": [0, 1]}


def test_a_path_relative_to_here_is_found_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    found = discover(".")
    assert [(f.run, f.path) for f in found] == [
        ("run", tmp_path / f"run/checkpoint-{step}") for step in (0, 1)
    ]


def test_a_name_that_is_no_text_still_becomes_one(tmp_path: Path) -> None:
    write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")))
    assert runs(discover(tmp_path)) == {"caf\\udce9": [0, 1]}


def test_a_folder_that_is_gone_when_it_is_read_is_empty_with_its_reason(tmp_path: Path) -> None:
    assert listing(tmp_path / "gone", 0.0).error == "No such file or directory"


def test_an_unreadable_folder_is_listed_and_the_others_go_on(tmp_path: Path) -> None:
    """In a process that is not root, whom nothing is unreadable to."""
    write(tmp_path / "run", (1, 2, 3))
    write(tmp_path / "shut")
    for folder in ("run/checkpoint-2", "shut"):
        (tmp_path / folder).chmod(0)
    code = (
        "import os, sys\n"
        "from pipeline.checkpoints import discover, layouts\n"
        "layouts('auto')\n"
        "os.geteuid() or os.seteuid(65534)\n"
        "for f in discover(sys.argv[1]): print(f.run, f.step, f.status, f.why)\n"
    )
    for parent in [tmp_path, *tmp_path.parents]:
        if "pytest-of-" in str(parent):
            parent.chmod(0o755)
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == [
        "run 1 ok ",
        "run 2 skipped cannot be read: Permission denied",
        "run 3 ok ",
        "shut -1 skipped cannot be read: Permission denied",
    ]


def test_thousands_of_checkpoints_are_all_found(tmp_path: Path, full: Save) -> None:
    folder = full(tmp_path / "run/checkpoint-0")
    for step in range(1, 2000):
        other = tmp_path / f"run/checkpoint-{step}"
        other.mkdir()
        for name in ("config.json", "model.safetensors"):
            os.link(folder / name, other / name)
    found = discover(tmp_path / "run", now=4e9)
    assert [f.step for f in found if f.status == "ok"] == list(range(2000))
