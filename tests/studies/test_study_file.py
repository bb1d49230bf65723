"""A TOML file -> cells, and what is said of a file that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.errors import InputError, SpecError
from lossscope.studies.study_file import ExamineConfig, read_study_file

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


def written(tmp_path: Path, text: str = SMALL) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_cell_for_every_data_encoder_objective_and_seed(tmp_path: Path) -> None:
    grid = read_study_file(written(tmp_path))
    assert (grid.name, grid.paper, len(grid.cells)) == ("small", "bleeker2022", 2 * 1 * 2 * 2)
    first = grid.cells[0]
    assert first.key == "scenes-ambiguity-0.1--vse--triplet-sh--seed0"
    assert first.group == ("scenes, ambiguity 0.1", "VSE++", "Triplet SH")
    assert (first.dataset, first.method) == ("flickr30k", "VSE++ (ResNet50, frozen)")
    assert first.recipe.objective == "triplet_sh:margin=0.2"
    assert "ambiguity=0.1" in first.recipe.data and "ambiguity=0.5" in grid.cells[-1].recipe.data
    assert [cell.seed for cell in grid.cells[:2]] == [0, 1]


def test_choices_of_an_entry_come_before_those_in_common(tmp_path: Path) -> None:
    cells = {(cell.objective_label, cell.seed): cell for cell in read_study_file(written(tmp_path)).cells}
    ours, other = cells["smoothap", 0].recipe, cells["Triplet SH", 0].recipe
    assert (ours.batch_size, ours.lr, ours.epochs) == (4, 1.0, 2)
    assert (other.batch_size, other.lr, other.epochs) == (16, 0.01, 2)


def test_a_spec_may_name_the_files_of_this_machine(tmp_path: Path) -> None:
    name = "scenes, ambiguity 0.5"
    grid = read_study_file(written(tmp_path), {name: "scenes:train=40,val=10,test=10,size=16"})
    assert {cell.recipe.data.split(",")[0] for cell in grid.cells if cell.data == name} == {"scenes:train=40"}
    with pytest.raises(InputError, match=r"--data must name one of scenes, ambiguity 0\.1.*got 'flickr'"):
        read_study_file(written(tmp_path), {"flickr": "scenes"})


def test_features_are_named_in_full(tmp_path: Path) -> None:
    text = SMALL.replace('spec = "vsepp:width=4,dim=8,words=8"', 'spec = "vsrn:dim=8"\nfeatures = "hog-grid:rows=2"')
    assert read_study_file(written(tmp_path, text)).cells[0].features == "hog_grid:rows=2,columns=6,cell=16"


def test_what_is_asked_of_runs(tmp_path: Path) -> None:
    assert read_study_file(written(tmp_path)).examination == ExamineConfig()
    text = SMALL + '[examine]\nsplit = "val"\nprobes = ["similarity"]\nwhat_if = ""\nbatch_size = 8\n'
    asked = read_study_file(written(tmp_path, text)).examination
    assert (asked.split, asked.probes, asked.what_if, asked.batch_size) == ("val", ("similarity",), "", 8)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', 'naem = "small"', "keys of .*small.toml must be of .*; got naem"),
        ("seeds = [0, 1]", "seeds = 3", "seeds of .* must be whole numbers"),
        ("seeds = [0, 1]", "seeds = []", "seeds of .* must be whole numbers"),
        ("epochs = 2", 'epochs = "two"', "epochs of .* must be int; got 'two'"),
        ("epochs = 2", "epoch = 2", "got 'epoch'"),
        ("[[encoders]]", "[[encoder]]", "keys of .*; got encoder"),
        ('spec = "smoothap"', 'name = "smoothap"', "must have a spec"),
        ('spec = "smoothap"', 'name = "Triplet SH"\nspec = "smoothap"', "names in .* must differ; got 'Triplet SH'"),
        ("each = { ambiguity = [0.1, 0.5] }", "each = { blur = [1] }", "braces of .* must name keys of each"),
        ("each = { ambiguity = [0.1, 0.5] }", "each = { ambiguity = 0.1 }", "must give lists"),
        ("recipe = { batch_size = 4, lr = 1 }", 'recipe = { sampling = "pairs", frob = 1 }', "got 'frob'"),
        ('spec = "triplet-sh:margin=0.2"', 'spec = "triplet-sh"\nrecipe = { sampling = "images" }', "one positive"),
    ],
)
def test_a_file_that_is_no_study_says_why(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(InputError, match=message):
        read_study_file(written(tmp_path, SMALL.replace(old, new)))


def test_a_name_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="did you mean 'smoothap'"):
        read_study_file(written(tmp_path, SMALL.replace('spec = "smoothap"', 'spec = "smoothapp"')))


def test_a_file_that_is_not_there_or_not_toml(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a readable TOML file of a study"):
        read_study_file(tmp_path / "none.toml")
    with pytest.raises(InputError, match="must be a readable TOML file of a study"):
        read_study_file(written(tmp_path, "name = "))


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "studies").glob("*-small.toml")), ids=str)
def test_the_studies_that_run_here_can_be_read(path: Path) -> None:
    grid = read_study_file(path)
    assert grid.name == path.stem and grid.about and len({cell.key for cell in grid.cells}) == len(grid.cells)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', 'name = "../../elsewhere"', "as it names a folder"),
        ('name = "small"', "name = 3", "name of .* must be words in quotes; got 3"),
        (
            'paper = "bleeker2022"',
            'paper = "bleeker22"',
            "paper of .* whose tables there are .*bleeker2022",
        ),
        (
            'spec = "smoothap"',
            'spec = "smoothap"\nfeatures = "hog-grid"',
            "keys of .*objectives.*; got features",
        ),
        ("each = { ambiguity = [0.1, 0.5] }", "each = [1]", "must be a table"),
        ('spec = "smoothap"', f'spec = "smoothap"\nname = "{"x" * 260}"', "at most 200 letters"),
        ("[[data]]", '[examine]\nconventions = ["relased"]\n[[data]]', "conventions of .* got relased"),
        ("[[data]]", "[examine]\nwhat_if = 3\n[[data]]", "what_if of .* must be words"),
        ("[[data]]", "[examine]\nsplit = 3\n[[data]]", "split of .* must be words"),
        ("[[data]]", '[examine]\nprobes = "cocos"\n[[data]]', "probes of .* must be a list"),
    ],
)
def test_values_of_a_wrong_kind_are_told_before_any_work(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_study_file(written(tmp_path, SMALL.replace(old, new)))
