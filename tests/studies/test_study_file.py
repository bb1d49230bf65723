"""Are the runs of a study those of its TOML file, and is another file refused with a reason?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.studies.study_file import ExamineConfig, ReportConfig, read_study_file

SMALL = """
name = "small"
paper = "bleeker2022"
seeds = [0, 1]
[recipe]
epochs = 2
batch_size = 16
lr = 0.01
[[data]]
name = "scenes, ambiguity {ambiguity}"
spec = "scenes:train=30,val=10,test=10,size=16,ambiguity={ambiguity}"
each = { ambiguity = [0.1, 0.5] }
published = "flickr30k"
[[encoders]]
name = "VSE++"
spec = "vsepp:width=4,dim=8,words=8"
published = "VSE++ (ResNet50, frozen)"
[[objectives]]
name = "Triplet SH"
spec = "triplet-sh:margin=0.2"
[[objectives]]
spec = "smoothap"
recipe = { batch_size = 4, lr = 1 }
"""


def write(tmp_path: Path, text: str = SMALL) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_run_for_every_data_encoder_objective_and_seed(tmp_path: Path) -> None:
    grid = read_study_file(write(tmp_path))
    assert (grid.name, grid.paper, len(grid.runs)) == ("small", "bleeker2022", 2 * 1 * 2 * 2)
    first = grid.runs[0]
    assert first.key == "scenes-ambiguity-0.1--vse--triplet-sh--seed0"
    assert first.system == ("scenes, ambiguity 0.1", "VSE++", "Triplet SH")
    assert (first.dataset, first.method) == ("flickr30k", "VSE++ (ResNet50, frozen)")
    assert first.recipe.objective == "triplet_sh:margin=0.2"
    assert "ambiguity=0.1" in first.recipe.data and "ambiguity=0.5" in grid.runs[-1].recipe.data
    assert [run.seed for run in grid.runs[:2]] == [0, 1]


def test_choices_of_an_entry_override_common_ones(tmp_path: Path) -> None:
    runs = {(run.objective_label, run.seed): run for run in read_study_file(write(tmp_path)).runs}
    smoothap, triplet = runs["smoothap", 0].recipe, runs["Triplet SH", 0].recipe
    assert (smoothap.batch_size, smoothap.lr, smoothap.epochs) == (4, 1.0, 2)
    assert (triplet.batch_size, triplet.lr, triplet.epochs) == (16, 0.01, 2)


def test_seeds_may_be_given_instead_of_those_of_the_file(tmp_path: Path) -> None:
    assert {run.seed for run in read_study_file(write(tmp_path), seeds=(7,)).runs} == {7}


def test_an_entry_may_be_restricted_to_others(tmp_path: Path) -> None:
    only = 'spec = "smoothap"\nonly = { data = ["scenes, ambiguity 0.5"] }'
    runs = read_study_file(write(tmp_path, SMALL.replace('spec = "smoothap"', only))).runs
    assert len(runs) == 2 * 2 + 2
    assert {run.data for run in runs if run.objective_label == "smoothap"} == {"scenes, ambiguity 0.5"}
    assert {run.data for run in runs if run.objective_label != "smoothap"} == {
        "scenes, ambiguity 0.1", "scenes, ambiguity 0.5"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("encoder", "objective", "message"),
    [
        ('begin_from = "BFAN"', "", "begin_from of 'step 2' in .* must name another of encoders .*; got 'BFAN'"),
        ('begin_from = "step 2"', "", "must name another of encoders .*; got 'step 2'"),
        (
            'begin_from = "x"\n[[encoders]]\nname = "x"\nspec = "vsepp:dim=8"\nbegin_from = "step 2"',
            "",
            "seed0 begins from .*, which is before it in a circle",
        ),
        ('begin_from = "VSE++"', 'only = { encoders = ["step 2"] }', "which is no run of the study"),
        ('begin_from = "VSE++"\nrecipe = { init = "x.pt" }', "", "--step-2--.* must have begin_from or init; it has"),
    ],
)
def test_a_second_step_must_have_a_first(tmp_path: Path, encoder: str, objective: str, message: str) -> None:
    second = f'[[encoders]]\nname = "step 2"\nspec = "vsepp:width=4,dim=8,words=8"\n{encoder}\n[[objectives]]'
    text = SMALL.replace("[[objectives]]", second, 1).replace('"smoothap"', f'"smoothap"\n{objective}')
    with pytest.raises(InputError, match=message):
        read_study_file(write(tmp_path, text))


def test_what_the_report_draws(tmp_path: Path) -> None:
    assert read_study_file(write(tmp_path)).report == ReportConfig()
    text = SMALL + '[report]\nobjectives = ["unified"]\nfigures = ["goal"]\n'
    assert read_study_file(write(tmp_path, text)).report == ReportConfig(("unified",), ("goal",))


def test_a_spec_may_name_the_files_of_this_machine(tmp_path: Path) -> None:
    name = "scenes, ambiguity 0.5"
    grid = read_study_file(write(tmp_path), {name: "scenes:train=40,val=10,test=10,size=16"})
    assert {run.recipe.data.split(",")[0] for run in grid.runs if run.data == name} == {"scenes:train=40"}
    with pytest.raises(InputError, match=r"--data must name one of scenes, ambiguity 0\.1.*got 'flickr'"):
        read_study_file(write(tmp_path), {"flickr": "scenes"})


def test_features_have_all_their_options(tmp_path: Path) -> None:
    text = SMALL.replace('spec = "vsepp:width=4,dim=8,words=8"', 'spec = "vsrn:dim=8"\nfeatures = "hog-grid:rows=2"')
    assert read_study_file(write(tmp_path, text)).runs[0].features == "hog_grid:rows=2,columns=6,cell=16"


def test_what_is_computed_of_runs(tmp_path: Path) -> None:
    assert read_study_file(write(tmp_path)).examine == ExamineConfig()
    text = SMALL + '[examine]\nsplit = "val"\nprobes = ["similarity"]\nwhat_if = ""\nbatch_size = 8\n'
    config = read_study_file(write(tmp_path, text)).examine
    assert (config.split, config.probes, config.what_if, config.batch_size) == ("val", ("similarity",), "", 8)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', 'naem = "small"', "keys of .*small.toml must be of .*; got 'naem'; did you mean 'name'"),
        ("seeds = [0, 1]", "seeds = 3", "seeds of .*small.toml must be a list; got 3"),
        ("seeds = [0, 1]", "seeds = []", "must have at least one seed and one combination of entries; it has none"),
        ("epochs = 2", 'epochs = "two"', "epochs of .* must be a whole number; got 'two'"),
        ("epochs = 2", "epoch = 2", "got 'epoch'"),
        ("[[encoders]]", "[[encoder]]", "keys of .*; got 'encoder'; did you mean 'encoders'"),
        ("[[encoders]]", "[encoder]\n[[encoders]]", "keys of .*; got 'encoder'; did you mean 'encoders'"),
        ('spec = "smoothap"', 'name = "smoothap"', "spec of objectives 2 of .* must be given; it is missing"),
        ('spec = "smoothap"', 'name = "Triplet SH"\nspec = "smoothap"', "names in .* must differ; got 'Triplet SH'"),
        ("each = { ambiguity = [0.1, 0.5] }", "each = { ambiguity = [] }", "must give lists, .*; got ambiguity = "),
        ("each = { ambiguity = [0.1, 0.5] }", "each = { blur = [1] }", "braces of .* must name keys of each"),
        (
            "each = { ambiguity = [0.1, 0.5] }",
            "each = { ambiguity = 0.1 }",
            "ambiguity of each of data 1 .* must be a list",
        ),
        ("recipe = { batch_size = 4, lr = 1 }", 'recipe = { sampling = "pairs", frob = 1 }', "got 'frob'"),
        ('spec = "triplet-sh:margin=0.2"', 'spec = "triplet-sh"\nrecipe = { sampling = "images" }', "one positive"),
    ],
)
def test_a_file_that_is_no_study_says_why(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(InputError, match=message):
        read_study_file(write(tmp_path, SMALL.replace(old, new)))


@pytest.mark.parametrize(
    "section",
    ['[examine]\nprobes = ["nonsense"]', '[examine]\nwhat_if = "nonsense"', '[report]\nobjectives = ["nonsense"]'],
)
def test_specs_of_a_study_are_checked_when_it_is_read(tmp_path: Path, section: str) -> None:
    with pytest.raises(
        InputError, match=r"small\.toml must be a study that can be run; .* must be one of .*; got 'nonsense'"
    ):
        read_study_file(write(tmp_path, f"{SMALL}{section}\n"))


def test_a_name_that_does_not_exist_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'smoothap'"):
        read_study_file(write(tmp_path, SMALL.replace('spec = "smoothap"', 'spec = "smoothapp"')))


def test_a_file_that_is_not_there_or_not_toml(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a readable TOML file of a study"):
        read_study_file(tmp_path / "none.toml")
    with pytest.raises(InputError, match="must be a readable TOML file of a study"):
        read_study_file(write(tmp_path, "name = "))


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "studies").glob("*-small.toml")), ids=str)
def test_the_studies_that_run_here_can_be_read(path: Path) -> None:
    grid = read_study_file(path)
    assert grid.name == path.stem and grid.about and len({run.key for run in grid.runs}) == len(grid.runs)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', 'name = "../../elsewhere"', "as it names a folder"),
        ('name = "small"', "name = 3", "name of .* must be text in quotes; got 3"),
        (
            'paper = "bleeker2022"',
            'paper = "bleeker22"',
            "paper of .* whose tables there are .*bleeker2022",
        ),
        (
            'spec = "smoothap"',
            'spec = "smoothap"\nfeatures = "hog-grid"',
            "keys of objectives 2 of .*; got 'features'",
        ),
        ("each = { ambiguity = [0.1, 0.5] }", "each = [1]", "must be a table"),
        ('spec = "smoothap"', f'spec = "smoothap"\nname = "{"x" * 260}"', "at most 200 letters"),
        (
            "[[data]]",
            '[examine]\nconventions = ["relased"]\n[[data]]',
            "conventions 1 of examine of .* must be one of corrected, released, text; got 'relased'",
        ),
        ("[[data]]", "[examine]\nwhat_if = 3\n[[data]]", "what_if of .* must be text in quotes; got 3"),
        ("[[data]]", "[examine]\nsplit = 3\n[[data]]", "split of .* must be text in quotes; got 3"),
        ("[[data]]", '[examine]\nprobes = "cocos"\n[[data]]', "probes of .* must be a list"),
        ("[[data]]", "[examine]\nbatch_size = 1\n[[data]]", "batch_size of .* must be a number of at least 2; got 1"),
        (
            "[[data]]",
            '[report]\nfigures = ["gaol"]\n[[data]]',
            "figures 1 of report of .* must be one of goal; got 'gaol'",
        ),
        (
            'spec = "smoothap"',
            'spec = "smoothap"\nonly = { data = ["x"] }',
            "only of 'smoothap' .* entries of data .*'x'",
        ),
        ('spec = "smoothap"', 'spec = "smoothap"\nonly = { seeds = ["0"] }', "only of objectives 2 of .* got 'seeds'"),
    ],
)
def test_values_of_a_wrong_kind_are_refused_before_any_work(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_study_file(write(tmp_path, SMALL.replace(old, new)))
