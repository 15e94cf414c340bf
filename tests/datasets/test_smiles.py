"""Molecules out of CSV files."""

import sys
from pathlib import Path

import numpy as np
import pytest

from haarpool.datasets import read_graphs, smiles, stream_graphs, table
from haarpool.datasets.encoding import Encoding
from haarpool.datasets.summary import summary
from haarpool.errors import HaarPoolWarning
from helpers.errors import error_with

pytest.importorskip("rdkit", reason="the extra haarpool[chem] is not installed")


@pytest.fixture
def csv(tmp_path):
    """`csv(line, ...)`: the path of a file with these lines."""

    def write(*lines: str, encoding="utf-8") -> Path:
        path = tmp_path / "molecules.csv"
        path.write_text("\n".join(lines) + "\n", encoding=encoding)
        return path

    return write


def columns(values, names):
    """The names of those columns that are not zero, row by row."""
    return [{name for name, value in zip(names, row, strict=True) if value} for row in values]


def test_molecules_by_hand(csv):
    graphs = read_graphs(csv("name,SMILES,y", "ethanol,CCO,1.5", "benzoate,[O-]C(=O)c1ccccc1,2"))
    assert graphs.name == "molecules"
    assert (graphs.ids, graphs.id_name) == (("CCO", "[O-]C(=O)c1ccccc1"), "smiles")
    assert graphs.lines.tolist() == [2, 3]
    assert graphs.sizes.tolist() == [3, 9]
    assert graphs.task is None
    atoms = graphs.columns["atoms"]
    assert atoms.shape[1] == len(smiles.ATOM_FEATURES)
    found = columns(atoms, smiles.ATOM_FEATURES)
    assert found[0] == {"C", "1 neighbours", "3 hydrogens", "SP3"}
    assert found[2] == {"O", "1 neighbours", "1 hydrogens", "SP3"}
    assert found[3] >= {"O", "charge", "0 hydrogens"}
    assert atoms[3, smiles.ATOM_FEATURES.index("charge")] == -1
    assert found[6] == {"C", "3 neighbours", "0 hydrogens", "SP2", "aromatic", "in a ring"} or (
        found[6] == {"C", "2 neighbours", "1 hydrogens", "SP2", "aromatic", "in a ring"}
    )
    assert graphs.edges[:, :4].tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graphs.edge_weight[:4].tolist() == [1, 1, 1, 1]
    assert sorted(set(graphs.edge_weight[4:])) == [1, 1.5, 2]
    bonds = columns(graphs.edge_columns["bonds"], smiles.BOND_FEATURES)
    assert bonds[0] == {"single"}
    assert {"aromatic", "conjugated", "in a ring"} in bonds
    adjacency = graphs.batch.adjacency
    assert abs(adjacency - adjacency.T).nnz == 0


def test_elements_and_odd_bonds(csv):
    graphs = read_graphs(csv("smiles", "[U]", "[Cu+2]<-[OH2]", "*C", "N[Pt@SP1](N)(Cl)Cl"))
    found = columns(graphs.columns["atoms"], smiles.ATOM_FEATURES)
    assert sum("other element" in atom for atom in found) == 4
    assert "chiral without code" in found[6]
    assert (graphs.edge_weight > 0).all()


# Pairs of stereoisomers, and the features of the first one by which they differ.
STEREOISOMERS = {
    "R and S": ("C[C@H](N)O", "C[C@@H](N)O", ["chiral R"], []),
    "cis and trans": ("F/C=C\\F", "F/C=C/F", [], ["cis (Z)"] * 2),
    "cis and trans in a ring": (
        "C[C@H]1CC[C@@H](C)CC1",
        "C[C@H]1CC[C@H](C)CC1",
        ["chiral s"] * 2,
        [],
    ),
    "one of two centres": (
        "C[C@H](O)[C@H](N)C",
        "C[C@H](O)[C@@H](N)C",
        ["chiral S", "chiral R"],
        [],
    ),
    "given and not given": ("F/C=C/F", "FC=CF", [], ["trans (E)"] * 2),
}


@pytest.mark.parametrize("name", STEREOISOMERS)
def test_stereoisomers_have_different_features(name, csv):
    first, second, atoms, bonds = STEREOISOMERS[name]
    one, other = (read_graphs(csv("smiles", isomer)) for isomer in (first, second))
    sums = [
        [*graphs.columns["atoms"].sum(axis=0), *graphs.edge_columns["bonds"].sum(axis=0)]
        for graphs in (one, other)
    ]
    assert sums[0] != sums[1]
    np.testing.assert_array_equal(one.edge_weight, other.edge_weight)
    tables = (
        (one.columns["atoms"], smiles.ATOM_FEATURES, atoms, "chiral"),
        (one.edge_columns["bonds"], smiles.BOND_FEATURES, bonds, "("),
    )
    for values, names, expected, part in tables:
        listed = [name for row in columns(values, names) for name in row if part in name]
        assert sorted(listed) == sorted(expected)


def test_the_same_molecule_in_another_order_has_the_same_features(csv):
    for one, other in (("C[C@H](N)O", "O[C@@H](N)C"), ("F/C=C/Cl", "Cl\\C=C\\F")):
        pair = [read_graphs(csv("smiles", written)) for written in (one, other)]
        rows = [np.array(sorted(graphs.columns["atoms"].tolist())) for graphs in pair]
        np.testing.assert_array_equal(*rows)
        rows = [np.array(sorted(graphs.edge_columns["bonds"].tolist())) for graphs in pair]
        np.testing.assert_array_equal(*rows)


def test_features_are_the_same_for_every_file(csv):
    one = read_graphs(csv("smiles", "CCO", "c1ccccc1", "C#N"))
    other = read_graphs(csv("smiles", "C#N", "BrCC", "CCO"))
    for kind in ("columns", "edge_columns"):
        (a,), (b,) = (list(getattr(graphs, kind).values()) for graphs in (one, other))
        assert a.shape[1] == b.shape[1]
    np.testing.assert_array_equal(one.columns["atoms"][:3], other.columns["atoms"][-3:])
    encoding = Encoding.fit(one, "atoms")
    assert encoding.encode(other).shape == (8, len(smiles.ATOM_FEATURES))


def test_isotopes_are_a_column_where_there_are_some(csv):
    graphs = read_graphs(csv("smiles", "CCO", "[13CH3]CO", "[2H]C", "[3H]C", "[12CH4]", "[235U]"))
    shifts = graphs.columns["isotopes"]
    assert shifts.shape == (len(graphs.owner), 1)
    assert [shifts[graphs.owner == g].sum() for g in range(6)] == [0, 1, 1, 2, 0, -3]
    assert "isotopes (1)" in Encoding.fit(graphs).describe()
    for lines in (("CCO", "[OH-]"), ("[12CH4]",)):
        assert list(read_graphs(csv("smiles", *lines)).columns) == ["atoms"]


def test_invalid_smiles_are_listed_with_their_lines(csv, capfd):
    lines = [
        "smiles,y",
        "CCO,1",
        "C1CC,2",
        ",3",
        "c1ccccc1,4",
        "what,5",
        "x,6",
        "y,7",
        "z,8",
        *(f"q{i},9" for i in range(16)),
    ]
    path = csv(*lines)
    with pytest.warns(HaarPoolWarning) as told:
        graphs = read_graphs(path, targets=["y"])
    (warning,) = told
    message = str(warning.message)
    assert message == (
        f"22 invalid SMILES in {path} skipped: line 3 'C1CC', line 4 '', line 6 'what' and 19 more"
    )
    assert graphs.ids == ("CCO", "c1ccccc1")
    assert graphs.lines.tolist() == [2, 5]
    assert graphs.targets.tolist() == [[1], [4]]
    with error_with("valid SMILES", "line 3 'C1CC'", "correct these lines"):
        read_graphs(path, targets=["y"], strict=True)
    assert capfd.readouterr() == ("", "")  # RDKit keeps quiet
    with pytest.warns(HaarPoolWarning, match="line 3 'C1CC', line 4 '', line 6 'what'$"):
        read_graphs(csv(*lines[:6]))  # three are all listed
    with error_with("valid SMILES", "line 2 'what'", "check the file"):
        read_graphs(csv("smiles", "what", "else("))
    with error_with("valid SMILES", "no lines below the header"):
        read_graphs(csv("smiles"))


def test_blocks_of_lines(csv):
    names = ["CCO", "C1CC", "c1ccccc1", "C", "N", "bad("]
    path = csv("SMILES;other", *(f"{name};1" for name in names))
    with pytest.warns(HaarPoolWarning, match="2 invalid SMILES .* line 3 'C1CC', line 7 'bad\\('"):
        blocks = list(stream_graphs(path, block=2))
    assert [block.ids for block in blocks] == [("CCO",), ("c1ccccc1", "C"), ("N",)]
    assert [block.lines.tolist() for block in blocks] == [[2], [4, 5], [6]]
    whole = ["graph 0 (line 2)", "graph 1 (line 4)", "graph 2 (line 5)", "graph 3 (line 6)"]
    assert [block.where(g) for block in blocks for g in range(len(block))] == whole
    with pytest.warns(HaarPoolWarning):
        whole = read_graphs(path)
    for key in ("columns", "edge_columns"):
        parts = [next(iter(getattr(block, key).values())) for block in blocks]
        np.testing.assert_array_equal(
            np.concatenate(parts), next(iter(getattr(whole, key).values()))
        )
    with error_with("valid SMILES", "line 3"):
        list(stream_graphs(path, block=2, strict=True))
    blocks = stream_graphs(csv("smiles", *["C"] * 50, "bad("), block=10)
    assert len(next(blocks)) == 10  # before the rest is read
    blocks.close()


def test_a_stream_reads_only_the_lines_it_needs(csv, monkeypatch):
    path = csv("smiles", *["CC"] * 5000)
    read = []
    rows = table.read_rows
    monkeypatch.setattr(
        table,
        "read_rows",
        lambda *given: (read.append(row) or row for row in rows(*given)),
    )
    blocks = stream_graphs(path, block=100)
    next(blocks)
    assert len(read) == 100
    assert sum(len(block) for block in blocks) == 4900


# ------------------------------------------------------------------ labels


def test_the_task_follows_from_the_labels(csv):
    rows = [f"CCO,{'yes' if i % 3 else 'no'},{i % 2},{i * 0.5},{i},{i % 2 or ''}" for i in range(9)]
    path = csv("smiles,text,bit,real,count,gaps", *rows)
    read = {name: read_graphs(path, targets=[name]) for name in ("text", "bit", "real", "count")}
    assert (read["text"].classes, read["text"].targets.tolist()[:3]) == (("no", "yes"), [0, 1, 1])
    assert (read["bit"].task, read["bit"].classes) == ("classification", ("0", "1"))
    assert (read["real"].task, read["real"].target_names) == ("regression", ("real",))
    assert read["count"].task == "regression"  # as many values as rows
    gaps = read_graphs(path, targets="gaps")
    assert gaps.classes == ("1",)
    assert gaps.targets.tolist() == [-1, 0] * 4 + [-1]
    assert summary(gaps)["missing labels"] == 5
    forced = read_graphs(path, targets=["bit"], task="regression")
    assert forced.targets.shape == (9, 1)
    assert len(read_graphs(path, targets=["count"], task="classification").classes) == 9


def test_several_targets(csv):
    path = csv("smiles,a,b,c", "CCO,1.5,nan,0", "CC,2.5,,1", "CO,,3.25,0", "C,1,1,1", "O,1,1,1")
    graphs = read_graphs(path, targets=["a", "b"])
    np.testing.assert_array_equal(
        graphs.targets[:3], [[1.5, np.nan], [2.5, np.nan], [np.nan, 3.25]]
    )
    assert graphs.target_names == ("a", "b")
    assert graphs.is_labelled.all()
    with error_with("several of the same two classes, or several of values", "'c'", "regression"):
        read_graphs(path, targets=["a", "c"])
    with error_with("two classes, the same in all of a, b, for multilabel", "4: 1, 1.5, 2.5"):
        read_graphs(path, targets=["a", "b"], task="classification")
    assert read_graphs(path, targets=["a", "c"], task="regression").targets.shape == (5, 2)


def test_labels_that_are_invalid_or_missing(csv):
    path = csv("smiles,y,empty", "CCO,1.5,", "CC,2.5,", "CO,much,nan", "C,4.5,")
    with error_with("a number in the column 'y'", "line 4: 'much'", 'task="classification"'):
        read_graphs(path, targets=["y"])
    with error_with("labels in the column 'empty'", "none"):
        read_graphs(path, targets=["empty"])
    with error_with('a target column for task="regression"', 'targets="COLUMN"'):
        read_graphs(path, task="regression")
    names = csv("smiles,id", *(f"C,molecule {i}" for i in range(30)))
    with error_with("a number in the column 'id'", "line 2: 'molecule 0'"):
        read_graphs(names, targets=["id"])
    assert len(read_graphs(names, targets=["id"], task="classification").classes) == 30


def test_whole_numbers_that_are_written_differently(csv):
    cells = ["10", "9", "1", "1.0", "-2", "1e1", "NA", "n/a", "NaN", "NULL", ""]
    graphs = read_graphs(csv("smiles,y", *(f"C,{cell}" for cell in cells)), targets=["y"])
    assert (graphs.task, graphs.classes) == ("classification", ("-2", "1", "9", "10"))
    assert graphs.targets.tolist() == [3, 2, 1, 1, 0, 3, *[-1] * 5]
    # Twenty different ones are classes, in forty spellings too.
    twice = [f"C,{i}{end}" for i in range(20) for end in ("", ".0", ".00")]
    assert len(read_graphs(csv("smiles,y", *twice), targets=["y"]).classes) == 20


def test_missing_values(csv):
    rows = [f"C,{i + 0.5}" for i in range(5)]
    cells = ["", "NA", "N/A", "nan", "Null"]
    graphs = read_graphs(csv("smiles,y", *rows, *(f"C,{cell}" for cell in cells)), targets=["y"])
    assert graphs.task == "regression"
    assert graphs.is_labelled.tolist() == [True] * 5 + [False] * 5


def test_an_underscore_is_no_digit(csv):
    path = csv("smiles,y", "C,1_5", "C,2.5", "C,3.5", "C,4.5")
    with error_with("a number in the column 'y'", "line 2: '1_5'"):
        read_graphs(path, targets=["y"])


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_separators_marks_and_quotes(csv, mark):
    path = csv(f'Smiles{mark}"a name"', f'CCO{mark}"with {mark} in it"', "", f"C{mark}b",
               encoding="utf-8-sig")  # fmt: skip
    graphs = read_graphs(path, targets=["a name"])
    assert graphs.classes == ("b", f"with {mark} in it")
    assert graphs.lines.tolist() == [2, 4]


def test_names_and_cells_may_contain_separators(csv):
    names = "smiles;name,with,commas;y"
    for cell in ("a", "a,b", "a,b,c"):
        graphs = read_graphs(csv(names, f"CCO;{cell};0.5", f"C;{cell};1.5"), targets=["y"])
        assert graphs.targets.tolist() == [[0.5], [1.5]]
    assert len(read_graphs(csv("smiles,a;b;c;d", "CCO,1", "C,2"))) == 2
    # No separator finds the column; that of the rows names those that there are.
    other = csv("structure;name,with,commas;y", "CCO;a;0.5")
    with error_with("its columns are structure, name,with,commas, y", 'pass smiles="COLUMN"'):
        read_graphs(other)
    assert len(read_graphs(csv("smiles", "CCO", "C"))) == 2
    with error_with("1 cells in each line", "line 2: 2"):
        read_graphs(csv("smiles", "CCO,1"))


def test_tables_with_tabs(csv, tmp_path):
    path = csv("smiles\ty", "CCO\t0.5", "CC\t1.5").rename(tmp_path / "molecules.tsv")
    assert read_graphs(path, targets=["y"]).targets.tolist() == [[0.5], [1.5]]
    assert [len(block) for block in stream_graphs(path)] == [2]


def test_each_column_once(csv):
    path = csv("SMILES,y,y,z", "CCO,1,2,3")
    for options in ({"targets": ["y"]}, {"smiles": "y"}):
        with error_with("a column 'y'", "got 2: y, y", "rename all but one"):
            read_graphs(path, **options)
    assert len(read_graphs(path, targets=["z"], task="regression")) == 1  # not asked for
    for options in (
        {"targets": ["z", "z"]},
        {"smiles": "z", "targets": ["z"]},
        {"targets": ["z", "SMILES"]},
    ):
        with error_with("each column once", "twice", "leave one out"):
            read_graphs(path, **options)
    both = csv("smiles,SMILES", "C,CC")
    with error_with("a column 'smiles'", "2: smiles, SMILES", 'pass smiles="COLUMN"'):
        read_graphs(both)
    assert read_graphs(both, smiles="SMILES").sizes.tolist() == [2]


def test_unknown_columns(csv):
    path = csv("structure,value", "CCO,1")
    with error_with(
        "a column 'smiles'", "its columns are structure, value", 'pass smiles="COLUMN"'
    ):
        read_graphs(path)
    with error_with("a column 'structur'", "did you mean structure"):
        read_graphs(path, smiles="structur")
    with error_with("a column 'valeu'", "did you mean value"):
        read_graphs(path, smiles="structure", targets=["valeu"])
    assert len(read_graphs(path, smiles="structure")) == 1
    assert len(list(stream_graphs(path, smiles="structure"))) == 1
    path.write_text("")
    with error_with("a column 'smiles'", "no header"):
        read_graphs(path)


def test_files_that_cannot_be_read(csv):
    path = csv("smiles,y", "CCO,1", "CC,2,3")
    with error_with("2 cells in each line", "line 3: 3"):
        read_graphs(path)
    path.write_bytes(b"smiles,y\nCCO,\xff\xfe\n")
    with error_with("a CSV file in UTF-8", "molecules.csv"):
        read_graphs(path)
    path.write_text('smiles,y\n"CCO,1\nCC,2\n')
    with error_with("a CSV file in UTF-8", "unexpected end of data"):
        read_graphs(path)


def test_without_rdkit(csv, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("rdkit.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with error_with("the optional package 'rdkit'", 'pip install "haarpool[chem]"'):
        read_graphs(csv("smiles", "CCO"))


def test_scaffolds():
    found = smiles.scaffolds(["CCc1ccccc1", "Oc1ccccc1CC1CC1", "CCCC"])
    assert found == ["c1ccccc1", "c1ccc(CC2CC2)cc1", ""]
