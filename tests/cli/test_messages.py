"""Does each line that cannot work give one message, an exit code, and nothing on stdout or in the folder?

What a message says of a value is tested where the library raises it; here one line of each refusal is typed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from lossscope.sources.checkpoints.checkpoint import Checkpoint
from tests.command_line import lossscope, message
from tests.each import each
from tests.planted.base import SIZES, healthy_dump
from tests.tiny import ENCODER, SCENES

PREFIXES = {
    "{train}": f"train --data scenes:train=30,val=10,test=10,size=16 --encoder {ENCODER} --objective ntxent --epochs 1 "
    "--batch-size 32",
    "{mining}": f"train --data {SCENES} --encoder {ENCODER} --epochs 1 --batch-size 32",
    "{sweep}": "cocos pairs.npz --objective ntxent --batch-size 8 --out frame --quiet",
    "{set}": "cocos set.npz --batch-size 8 --quiet",
    "{audit}": "audit --data scenes:train=40,val=8,test=10,size=16,ambiguity=0.6 --out out --batch-size 16 --sheet 30",
    "{scenes}": "scenes:train=6,val=3,test=3,size=32",
}
"""First words of lines, and a data set."""
STEPS = """
def step(queries, candidates):
    return (queries * candidates).sum()


def shifted(queries, candidates):
    return -step(queries, candidates)


def one(queries):
    return queries.sum()


number = 3
"""
WRITES = ("diverged", "__pycache__")  # files that a line may leave: a training that failed, the steps that were read

LINES = [
    # Sources, objectives, batches and outputs of sweeps; training; verifying
    ("cocos none.pt", 1, "source must exist; there is nothing at none.pt"),
    ("cocos text.pt", 1, "text.pt must be a torch file; it starts with b'I am'"),
    ("cocos empty.pt", 1, "empty.pt must be a torch file; it is empty"),
    ("cocos cut.pt", 1, "cut.pt must be a whole torch file; it is cut off or damaged. Copy it again"),
    ("cocos foreign.pt", 1, "it holds argparse.Namespace objects, which are never loaded"),
    ("cocos tensor.pt", 1, "or hold two sides or a labelled set by name; it holds Tensor"),
    ("cocos newer.pt", 1, "Install a newer lossscope"),
    ("cocos nan.pt", 1, "vectors of split 'train' must be finite; row 0 is not. The training diverged"),
    ("cocos plugin.pt", 1, "lossscope imports it only with --trust-code"),
    ("cocos lost.pt", 1, "split of nowhere must be one of"),
    ("cocos notes.txt", 1, "notes.txt must be one of: an embedding or similarity dump"),
    ("cocos emptyfolder", 1, "emptyfolder must be one of"),
    ("cocos nan.npz --objective triplet", 1, "images of nan.npz must be finite; row 3 is not"),
    ("cocos zero.npz --objective triplet", 1, "images of zero.npz must not be zero; row 2 is"),
    ("cocos cut.npz --objective triplet", 1, "cut.npz must be a whole .npz file"),
    ("cocos object.npz --objective triplet", 1, "plain numbers or texts, not pickled objects"),
    ("cocos odd.npz --objective triplet", 1, "got 23 captions for 12 images"),
    ("cocos cut.safetensors --objective triplet", 1, "must be a whole safetensors file"),
    ("cocos dump.npz --objective ntxnt", 2, "got 'ntxnt'; did you mean 'ntxent'?"),
    ("cocos none.pt --objective ntxnt", 1, "source must exist; there is nothing at none.pt"),
    ("cocos dump.npz --objective ntxent:tua=1", 2, "key of ntxent must be one of tau; got 'tua'; did you mean"),
    ("cocos dump.npz --objective ntxent:tau=cold", 2, "ntxent:tau must be float; got 'cold'"),
    ("cocos dump.npz --objective ntxent:tau=0", 1, "tau must be > 0; got 0.0"),
    ("cocos dump.npz --objective ntxent:tau", 2, "spec must be name:key=value"),
    ("cocos dump.npz --objective ./gone.py:Mine", 2, "plug-in file must exist; got './gone.py'"),
    ("cocos dump.npz --objective triplet --eps=-1", 2, "--eps must be a finite number >= 0; got -1"),
    ("cocos dump.npz --objective triplet --eps inf", 2, "--eps must be a finite number >= 0; got inf"),
    ("cocos dump.npz --objective triplet --eps nan", 2, "--eps must be a finite number >= 0; got nan"),
    ("cocos dump.npz --objective triplet --eps low", 2, "Invalid value for '--eps'"),
    ("cocos dump.npz --objective goal --convention released", 1, "convention of Goal must be one of corrected"),
    ("cocos dump.npz --objective triplet --convention paper", 2, "'paper' is not one of 'corrected', 'released'"),
    ("cocos dump.npz --objective triplet --sampling images", 1, "use --sampling pairs, or leave it out"),
    ("cocos dump.npz --objective triplet --sampling rows", 2, "'rows' is not one of 'pairs', 'images'"),
    ("cocos dump.npz --objective triplet --batch-size 1", 2, "--batch-size must be a number of at least 2, or all"),
    ("cocos dump.npz --objective triplet --batch-size ²", 2, "--batch-size must be a number of at least 2, or all"),
    ("cocos dump.npz --objective triplet --batch-size 99 --drop-last", 1, "Use a smaller one, or --keep-last"),
    ("cocos dump.npz --objective triplet --device tpu", 2, "--device must be auto, cpu, cuda or cuda:INDEX"),
    ("cocos dump.npz --objective triplet --device cuda:99", 1, "--device cuda:99: "),
    ("cocos dump.npz --objective triplet --format xml", 2, "'xml' is not one of 'table', 'json', 'csv'"),
    ("cocos dump.npz --objective triplet --same-image drop", 2, "'drop' is not one of 'keep', 'mask'"),
    ("cocos dump.npz --objective triplet --captions last", 2, "'last' is not one of 'all', 'first'"),
    ("cocos dump.npz --objective triplet --per-query", 2, "--per-query needs --out"),
    ("cocos dump.npz --objective triplet --seed=-1", 2, "Invalid value for '--seed'"),
    ("cocos dump.npz --objective triplet --out usedfolder", 1, "usedfolder must be empty or a frame"),
    ("cocos dump.npz --objective triplet --out notes.txt", 1, "notes.txt must be a folder for the frame"),
    ("cocos dump.npz --objective triplet --out notes.txt/frame", 1, "notes.txt"),
    ("cocos ckpt.pt --split dev", 1, "split must be one of train, val, test; got 'dev'"),
    ("cocos ckpt.pt --data scenes:size=32", 1, "state it in the data set's spec, --data NAME:...,size=16"),
    ("cocos ckpt.pt --data flickr", 2, "data set must be one of beir, coco, "),
    ("cocos ckpt.pt --data karpathy:root=gone,name=flickr8k", 1, "gone/dataset_flickr8k.json must exist"),
    ("cocos ckpt.pt --data karpathy:root=pictures,name=toy,size=16", 1, "must be a whole picture"),
    ("cocos ckpt.pt --data karpathy:root=pictures", 2, "karpathy needs name=...; got 'karpathy:root=pictures'"),
    ("cocos", 2, "Missing argument"),
    ("cocos dump.npz --objective triplet --epsilon 1", 2, "No such option: --epsilon"),
    ("eval dump.npz --folds 5", 1, "--folds must divide the number of images, 12; got 5"),
    ("eval dump.npz --folds 0", 2, "Invalid value for '--folds'"),
    ("eval dump.npz other.npz --ensemble", 1, "sources of an ensemble must hold the same items"),
    ("eval dump.npz --format xml", 2, "'xml' is not one of 'table', 'json', 'csv'"),
    ("eval dump.npz --out emptyfolder", 1, "emptyfolder must be the name of a file; there is a folder"),
    ("eval usedfolder", 1, "usedfolder must be one of"),
    ("diagram --triplet cri", 2, "--triplet must be one of con, nca, cir; got 'cri'"),
    ("diagram --pair quad", 2, "--pair must be one of"),
    ("diagram --triplet cir --tau 0", 1, "tau must be > 0"),
    ("diagram --triplet cir -o a.jpg", 1, "picture must end in .pdf, .png or .svg; got 'a.jpg'"),
    ("diagram --triplet cir --low 2", 1, "range must be within -1..1"),
    ("diagram --triplet cir --points 1", 2, "Invalid value for '--points'"),
    ("diagram --triplet cir --objective triplet", 2, "--objective draws any objective; give it alone"),
    ("diagram --objective goal:pair=sig-ms", 1, "depend on the rest of the batch"),
    ("trajectory gone", 1, "gone must be a run folder with metrics.csv"),
    ("trajectory usedfolder", 1, "must be a run folder with metrics.csv"),
    ("trajectory badrun", 1, "metrics.csv must"),
    ("trajectory run -o a.bmp", 1, "picture must end in .pdf, .png or .svg"),
    ("trajectory run --format latex", 2, "'latex' is not one of 'table', 'csv', 'json'"),
    ("list losses", 2, "KIND must be one of objectives, encoders"),
    ("verify none.pt", 1, "source must exist; there is nothing at none.pt"),
    ("verify nan.pt", 1, "weights of nan.pt must be finite"),
    ("cocos dump.npz --tau 0.1", 2, "--tau. It is part of a spec: --objective ntxent:tau=0.1"),
    ("train --data scenes --width 8", 2, "--width. It is part of a spec: --encoder"),
    ("cocos dump.npz --nonsense 1", 2, "No such option: --nonsense"),
    ("cocos dump.npz --loss ntxent", 2, "No such option: --loss. Write --objective"),
    ("train --criterion ntxent", 2, "No such option: --criterion. Write --objective"),
    ("cocos dump.npz --output x", 2, "No such option: --output. Write --out"),
    ("train --learning-rate 1", 2, "No such option: --learning-rate. Write --lr"),
    ("cocos dump.npz --temperature 0.1", 2, "--temperature. It is part of a spec: --objective ntxent:tau=0.1"),
    ("cocos dump.npz --objective triplet --out /proc/x", 1, "Nothing can be made in /proc: choose another folder"),
    ("cocos ckpt.pt --data flickr8k", 2, "did you mean 'karpathy:root=DIR,name=flickr8k'?"),
    ("cocos dump.npz --objective clip", 2, "did you mean 'ntxent'?"),
    ("cocos dump.npz --objective ./gone.py", 2, "must exist, and be followed by a name, ./gone.py:NAME"),
    ("verify usedfolder", 1, "must be a checkpoint file, a run folder or a dump; it is a folder without .pt"),
    ("train", 2, "train needs --data and --encoder and --objective"),
    ("train --resume gone", 1, "gone must be a run folder; it has no config.toml"),
    ("train --resume run --lr 1", 2, "only --epochs may change; got --lr"),
    ("train --resume run --out x", 2, "only --epochs may change; got --out"),
    ("train --resume run --epochs 1", 1, "--epochs must be at least the 2 that run has finished"),
    ("train --config gone.toml", 1, "gone.toml must be a readable TOML file"),
    ("train --config bad.toml", 1, "keys of bad.toml must be of data, encoder"),
    ("{train} --out usedfolder", 1, "usedfolder must be new or empty; it is not"),
    ("{train} --out notes.txt", 1, "notes.txt must be a folder to write; it is a file"),
    ("{train} --out notes.txt/run", 1, "notes.txt"),
    ("{train} --epochs=-1", 1, "epochs must be at least 0; got -1"),
    ("{train} --batch-size 1", 1, "batch-size must be at least 2; got 1"),
    ("{train} --lr nan", 1, "lr and lr-gamma must be > 0"),
    ("{train} --seed=-1", 1, "seed must be in 0.."),
    ("{train} --reduction max", 2, "'max' is not one of 'sum', 'mean', 'pairs', 'cells'"),
    ("{train} --precision fp8", 2, "'fp8' is not one of 'fp32', 'bf16', 'fp16'"),
    ("{train} --sampling images", 1, "sampling must be pairs or single for ntxent"),
    ("{train} --encoder vsepp:image=linear", 1, "image=linear must be given features"),
    ("{train} --encoder vsepp:image=resnet18,weights=gone.pth", 1, "gone.pth must exist"),
    ("{train} --encoder bert", 2, "encoder must be one of bfan"),
    ("{train} --data scenes:size=8", 1, "scenes:size must be in 16..512; got 8"),
    ("{train} --data karpathy:root=gone,name=x", 1, "gone/dataset_x.json must exist"),
    ("{train} --data precomp:root=gone", 1, "split of gone must be one of"),
    ("{train} --save-every 0", 2, "Invalid value for '--save-every'"),
    ("{train} --lr 1e30 --clip 0 --out diverged", 1, "training diverged"),
    ("nonsense", 2, "No such command 'nonsense'"),
    # Probes and differences
    ("weight-mass dump.npz --objective triplet --eps=-1", 1, "eps must be a number >= 0; got -1"),
    ("tangent dump.npz --objective triplet --of batch", 2, "must be one of query, candidate, hardest"),
    ("probe dump.npz --objective triplet --probes cocoa", 2, "did you mean"),
    ("probe dump.npz --objective triplet --probes cocos:epsilon=1", 2, "did you mean"),
    ("cocos dump.npz --objective ntxent --curve a.txt", 2, "--curve must end in .csv, .pdf, .png or .svg; got 'a.txt'"),
    ("diff dump.npz --objective ntxent --b-mode train", 1, "train mode"),
    ("diff dump.npz short.npz --objective triplet", 1, "12 and 7"),
    # Intervals
    ("cocos dump.npz --objective ntxent --interval 0", 2, "--interval must be"),
    ("cocos dump.npz --objective ntxent --interval 49", 2, "--interval must be"),
    ("cocos dump.npz --objective ntxent --interval 100", 2, "--interval must be"),
    ("cocos dump.npz --objective ntxent --interval 1", 2, "--interval must be"),
    ("cocos dump.npz --objective ntxent --interval nan", 2, "--interval must be"),
    ("cocos dump.npz --objective ntxent --interval most", 2, "--interval must be"),
    ("cocos dump.npz --objective ntxent --interval -95", 2, "--interval must be"),
    ("cocos dump.npz --objective ntxent --interval=", 2, "--interval must be"),
    # Any two sides, and one labelled set
    ("{sweep} --negatives some", 2, "'some' is not one of 'batch', 'own', 'none'"),
    ("{sweep} --mined 0", 2, "'--mined': Input should be greater than or equal to 1"),
    ("{sweep} --mined 2 --negatives none", 2, "--mined needs mined negatives; --negatives none leaves them out"),
    (
        "{sweep} --mined 2 --sampling views", 2,
        "--negatives and --mined are for pairs and groups; --sampling views has none",
    ),
    ("{sweep} --negatives own --sampling views", 2, "are for pairs and groups; --sampling views has none"),
    ("{sweep} --per-class 1", 2, "'--per-class': Input should be greater than or equal to 2"),
    (
        "{sweep} --mask nothing", 2,
        "mask must be one of above, gist, pairs, percent, same_item, same_text; got 'nothing'",
    ),
    ("{sweep} --mask above:margin=x", 2, "above:margin must be float; got 'x'"),
    ("{sweep} --mask percent:share=2", 1, "share must be"),
    ("{sweep} --mask none --mask above", 2, "--mask none stands alone; got it beside above"),
    ("{sweep} --mask gist", 1, "--mask gist needs a guide, embeddings of the same items: --guide SOURCE"),
    ("{sweep} --guide guide.npz", 2, "--guide needs a rule that reads it; add --mask gist"),
    ("{sweep} --mask above --guide guide.npz", 2, "--guide needs a rule that reads it; add --mask gist"),
    ("{sweep} --mask gist --guide set.npz", 1, "--guide must hold the items of pairs.npz, in the same order; set.npz"),
    ("{sweep} --mask gist --guide none.npz", 1, "must exist; there is nothing at none.npz"),
    ("{sweep} --mask same-text --sampling views", 1, "lossscope cannot use --mask same-text: it needs the inputs"),
    (
        "{sweep} --mask same-item --sampling views", 1,
        "lossscope cannot use --mask same-item: the batch has the items of both",
    ),
    ("{sweep} --terms q2x", 1, "--terms must be some of q2q, d2q, d2d, p2p, each once; got q2x"),
    ("{sweep} --terms q2q,q2q", 1, "--terms must be some of q2q, d2q, d2d, p2p, each once; got q2q,q2q"),
    ("{sweep} --terms q2q --objective triplet", 1, "--terms is for losses of one softmax over all candidates: ntxent"),
    ("{sweep} --terms q2q --sampling views", 1, "--terms is for batches of pairs; got --sampling views"),
    ("{sweep} --dims 0", 2, "--dims must be different widths with commas, as 64,128,full; got '0'"),
    ("{sweep} --dims 2,2", 2, "--dims must be different widths with commas"),
    ("{sweep} --dims 2,02", 2, "--dims must be different widths with commas"),
    ("{sweep} --dims 2,9", 1, "--dims must be at most the width of pairs.npz, 8; got 9"),
    ("{sweep} --sides a/b/c", 1, "sides must be two names, such as query/document, or one of a set; got 'a/b/c'"),
    ("{sweep} --sides a/a", 1, "sides must have two names; got 'a' twice"),
    ("{sweep} --sides item", 1, "pairs.npz must hold `embeddings`, or `similarity`"),
    ("{sweep} --sampling rows", 2, "'rows' is not one of 'pairs', 'images', 'groups', 'classes', 'views'"),
    ("{sweep} --sampling classes", 1, "--sampling classes is for one labelled set; got query/document pairs"),
    ("{sweep} --sampling groups", 1, "--sampling groups gives each query several positives, which ntxent"),
    ("{sweep} --convention released", 1, "convention released repeats counters of images and captions"),
    (
        "{set} --sampling pairs --objective ntxent", 1,
        "--sampling must be classes for items of one labelled set, which have no pairs; got pairs",
    ),
    ("{set} --sampling views --objective ntxent", 1, "--sampling must be classes for items of one labelled set"),
    (
        "{set} --per-class 4 --objective ntxent", 1,
        "--per-class 4 gives each item several positives, which ntxent:tau=0.1 does not take; its",
    ),
    (
        "{set} --batch-size all --objective ntxent", 1,
        "--batch-size all gives each item several positives, which ntxent:tau=0.1 does not take",
    ),
    (
        "{set} --per-class 8 --objective supcon", 1,
        "batch size must be a multiple of --per-class 8, 2 classes or more; got 8",
    ),
    (
        "{set} --per-class 3 --objective supcon", 1,
        "batch size must be a multiple of --per-class 3, 2 classes or more; got 8",
    ),
    # Samples of huge sets
    ("cocos shards --objective ntxent --queries 1", 2, "2"),
    ("cocos shards --objective ntxent --queries 20 --batch-size 64", 1, "needs --batch-size all"),
    ("cocos shards --objective ntxent --queries 20 --precision-of C_neg=1%", 2, "give one"),
    ("cocos shards --objective ntxent --precision-of C_neg", 2, "as C_neg=1%"),
    ("cocos shards --objective ntxent --queries 20 --dims 4", 1, "--dims needs embeddings in memory"),
    # Retrieval and comparisons
    ("compare ntxent-0.pt", 1, "at least two systems with the same data and encoder; got ntxent"),
    ("compare ntxent-0.pt ntxent-1.pt", 1, "at least two systems with the same data and encoder; got ntxent"),
    ("compare ntxent-0.pt ntxent-0.pt", 1, "runs must be given once each; got ntxent-0.pt several times"),
    ("compare ntxent-0.pt copy.pt triplet-0.pt", 1, "ntxent must have different seeds; ntxent-0.pt and copy.pt both"),
    ("compare ntxent-0.pt triplet-0.pt --baseline x", 1, 'baseline must be one of "ntxent", "triplet"'),
    ("compare ntxent-0.pt short.npz", 1, "the same queries; those of ntxent-0.pt and short.npz differ"),
    ("compare ntxent-0.pt gone.pt", 1, "source must exist; there is nothing at gone.pt"),
    ("compare ntxent-0.pt triplet-0.pt --metric R@1", 2, "--metric must be one of rsum, i2t_R@1"),
    ("compare ntxent-0.pt triplet-0.pt --level 2", 2, "--level must be between 0 and 1; got 2"),
    ("compare ntxent-0.pt triplet-0.pt --resamples 5", 2, "greater than or equal to 99"),
    ("compare ntxent-0.pt triplet-0.pt --baseline ntxent --all-pairs", 2, "exclude each other"),
    ("compare", 2, "Missing argument"),
    ("eval ntxent-0.pt triplet-0.pt --ensemble --run-files trec", 2, "leave out --ensemble and --folds"),
    ("eval ntxent-0.pt --folds 2 --run-files trec", 2, "leave out --ensemble and --folds"),
    ("eval ntxent-0.pt --run-files trec --run-top none", 2, "--run-top must be a number of at least 1, or all"),
    ("eval ntxent-0.pt --run-files ntxent-0.pt", 1, "must be a folder for run files; it is a file"),
    ("eval good.npz --folds 5", 1, "--folds cuts images with their captions; good.npz has queries and documents"),
    ("eval good.npz --k 0", 2, "--k must be numbers of at least 1, such as 10,100; got '0'"),
    ("eval good.npz --k ten", 2, "--k must be numbers of at least 1"),
    ("eval good.npz set.npz --ensemble", 1, "sources of an ensemble must hold the same items"),
    ("compare good.npz bad.npz --metric rsum", 1, "metric must be one of q2d_nDCG@10, q2d_R@1"),
    ("compare good.npz bad.npz --metric nDCG@10", 2, "--metric must be one of q2d_nDCG@10, q2d_R@1"),
    ("compare good.npz bad.npz --metric q2d", 2, "--metric must be one of rsum, i2t_R@1"),
    ("compare good.npz bad.npz --metric all_MAP@R", 1, "metric must be one of q2d_nDCG@10"),
    ("eval dump.npz --judged-only", 2, "--judged-only needs --judgements"),
    ("eval images.npz --judgements judged.csv --folds 2", 2, "leave out --folds"),
    ("eval images.npz --judgements judged.csv --run-files trec", 2, "leave out --judgements"),
    ("eval set.npz --judgements judged.csv", 1, "one set"),
    ("eval images.npz --judgements nowhere.csv", 1, "nowhere.csv"),
    # Pictures
    ("diagram --triplet nca --path --points 11", 2, "--path needs one --overlay, a run folder"),
    ("diagram --triplet nca --style print --points 11", 2, "'print' is not one of 'screen', 'paper'"),
    (
        "diagram --triplet nca --direction up --points 11", 2,
        "--direction must be i2t, t2i, q2d, ..., or both; got 'up'",
    ),
    ("diagram --triplet nca --overlay none.pt --points 11", 1, "there is nothing at none.pt"),
    ("diagram --triplet nca --overlay empty --path --points 11", 1, "it has 0"),
    ("plot triplet_feld field.csv", 2, "did you mean 'triplet_field'"),
    ("plot style field.csv", 2, "PICTURE"),
    ("plot triplet_field gone.csv", 1, "gone.csv must be a readable .csv file"),
    ("plot triplet_field field.json", 1, "rows must be in a .csv or .parquet file; got 'field.json'"),
    ("plot triplet_field field.csv -o field.bmp", 1, "field.bmp"),
    # Mining, and training with what was mined
    ("mine gone --out candidates", 1, "source must exist; there is nothing at gone"),
    ("mine run --out run", 1, "run must be new or empty; it is not. Choose another --out"),
    ("mine run --out candidates --top 0", 2, "Invalid value for '--top'"),
    (
        "{mining} --objective aoq", 1,
        "needs offline candidates. Mine those of the training split under a trained model with",
    ),
    ("{mining} --objective ncr --info gone.npz", 1, "gone.npz must exist"),
    ("{mining} --objective ncr --init gone.pt", 1, "gone.pt must exist"),
    ("{mining} --objective aoq --offline run", 1, "run must be a folder written by lossscope mine"),
    # Studies and reports
    ("study run", 2, "Missing argument"),
    ("study run gone.toml", 1, "gone.toml must be a readable TOML file of a study"),
    ("study run empty", 1, "empty must be the folder of a study; it has no study.json"),
    ("study run tiny.toml --out full", 1, "full must be new, empty, or a study; it is something else"),
    ("study run tiny.toml --launcher nonsense", 2, "launcher must be one of"),
    ("study run tiny.toml --launcher local:jobs=-1", 1, "jobs must be"),
    ("study run tiny.toml --data nonsense", 2, "--data must be NAME=SPEC; got"),
    ("study run tiny.toml --data other=scenes", 1, "--data must name one of scenes; got 'other'"),
    ("study run runs/tiny --out else", 2, "a folder states its data; give --data and --out with the TOML file"),
    ("study run tiny.toml --device tpu", 2, "--device must be auto, cpu, cuda"),
    ("study run changed.toml --out runs/tiny", 1, "must keep the choices it began with; got another lr"),
    ("study run wrong.toml", 1, "keys of wrong.toml must be of"),
    ("study status gone.toml", 1, "must be a readable TOML file of a study"),
    ("study status tiny.toml --out gone", 1, "gone must be the folder of a study; it has no study.json"),
    ("study status tiny.toml --format latex", 2, "'latex' is not one of 'table', 'json', 'csv'"),
    ("study table tiny.toml --format nonsense", 2, "'nonsense' is not one of 'table', 'json', 'csv'"),
    ("study table empty", 1, "empty must be the folder of a study"),
    ("study nonsense", 2, "No such command"),
    ("study power tiny.toml --seeds 3,x", 2, "--seeds must be whole numbers such as 3,5,10; got '3,x'"),
    ("study power tiny.toml --seeds ,", 2, "--seeds must be numbers such as 3,5,10; got none"),
    ("study power tiny.toml --seeds 1,2", 2, "--seeds must be at least 2; got 1, 2"),
    ("study power tiny.toml --images -5", 2, "--images must be whole numbers"),
    ("study power tiny.toml --power 1.5", 2, "--power must be between --alpha, 0.05, and 1; got 1.5"),
    ("study power tiny.toml --alpha 0", 2, "alpha must be between 0 and 1; got 0"),
    ("study power tiny.toml --level 1", 2, "level must be between 0 and 1; got 1"),
    ("study power tiny.toml --difference -1", 2, "difference must be above 0; got -1"),
    ("study power tiny.toml --metric R@7", 1, "metric must be one of rsum"),
    ("study power tiny.toml --baseline x", 1, 'baseline must be one of "NT-Xent", "Triplet" (scenes, VSE++); got "x"'),
    ("study power tiny.toml --format nonsense", 2, "nonsense"),
    ("study power tiny.toml --out gone", 1, "gone must be the folder of a study"),
    ("report", 2, "Missing argument"),
    ("report gone", 1, "source must exist; there is nothing at gone"),
    ("report runs/tiny dump.npz", 1, "dump.npz must be the folder of a study or of a run; it has neither"),
    ("report dump.npz --label A", 2, "--label are for studies and runs; dump.npz is neither"),
    ("report dump.npz dump.npz", 1, "sources of a report must differ; got dump.npz, dump.npz"),
    ("report dump.npz set.npz", 1, "must be of the same sides; got"),
    ("report dump.npz --columns nonsense", 1, "columns must be among"),
    ("report runs/tiny --out file", 1, "file must be a folder; it is a file. Choose another --out"),
    ("report runs/tiny --out file/below", 1, "must be written whole"),
    ("report runs/tiny --out mine", 1, "mine must be new, empty, or an earlier report; it holds other files"),
    ("report runs/tiny runs/tiny", 1, "names of runs must differ; got"),
    ("report runs/tiny --resamples 5", 2, "greater than or equal to 99"),
    ("report runs/tiny --device tpu", 2, "--device must be auto, cpu, cuda"),
    ("report broken", 1, "study.json must be whole JSON"),
    ("report waiting", 1, "at least one run must be finished; got"),
    # Audits and the doctor
    ("audit --out out", 2, "audit needs a SOURCE, or a file with texts: lossscope audit train.jsonl --out audit"),
    ("{audit} --threshold 0", 2, "must be above 0"),
    ("{audit} --pairs pairs.csv --format json", 2, "--format json is for an audit's result"),
    ("{audit} --threshold 2", 2, "less than or equal to 1"),
    ("{audit} --labels none.csv", 1, "none.csv"),
    ("{audit} --signal similarty", 2, "did you mean 'similarity'"),
    ("{audit} --signal similarity", 1, "an audit needs texts or embeddings"),
    ("{audit} --split dev", 1, "split must be one of train, val, test"),
    ("{audit} --objective nosuch", 2, "objective must be one of"),
    ("audit none.pt --out out", 1, "none.pt"),
    ("{audit} --batch-size 5000", 2, "less than or equal to 4096"),
    ("doctor", 2, "doctor needs a SOURCE or --log"),
    ("doctor --objective ntxent", 2, "doctor needs a SOURCE or --log"),
    ("doctor --log train.csv --column train/loss", 2, "--column must be FIELD=NAME, such as loss=train/loss"),
    ("doctor --log train.csv --column =x", 2, "--column must be FIELD=NAME"),
    ("doctor a.npz --fail-on note", 2, "'note' is not one of 'error', 'warning'"),
    ("doctor a.npz --batch-size 0", 2, "greater than or equal to 1"),
    ("doctor healthy.npz --objective ntxnt", 2, "got 'ntxnt'; did you mean 'ntxent'?"),
    ("doctor healthy.npz --objective ntxent:tua=1", 2, "got 'tua'; did you mean 'tau'?"),
    ("doctor scenes:tain=3", 2, "got 'tain'; did you mean 'train'?"),
    ("doctor a.npz --format csv", 2, "'csv' is not one of 'table', 'json', 'markdown'"),
    ("doctor gone.npz --no-cache", 1, "there is nothing at 'gone.npz'"),
    ("doctor --log gone.csv --no-cache", 1, "gone.csv"),
    ("doctor healthy.npz --log gone.csv --no-cache", 1, "gone.csv"),
    ("doctor --log noloss.csv --no-cache", 1, "noloss.csv must have a column of the training loss, such as loss"),
    ("doctor --log noloss.csv --no-cache", 1, "got step, accuracy, lr. Name it: --column loss=NAME"),
    ("doctor --log noloss.csv --column loss=acuracy --no-cache", 1, "did you mean 'accuracy'"),
    ("doctor --log noloss.csv --column los=accuracy --no-cache", 1, "--column must name one of"),
    ("doctor --log words.csv --no-cache", 1, "words.csv"),
    ("doctor --log empty.csv --no-cache", 1, "empty.csv"),
    ("doctor --log empty --no-cache", 1, "empty"),
    ("doctor damaged.npz --no-cache", 1, "damaged.npz"),
    ("doctor damaged.pt --no-cache", 1, "damaged.pt"),
    ("doctor empty.npz --no-cache", 1, "empty.npz"),
    ("doctor empty.jsonl --no-cache", 1, "empty.jsonl"),
    ("doctor empty --no-cache", 1, "empty must be one of"),
    ("doctor scalar.npz --no-cache", 1, "scalar.npz"),
    ("doctor healthy.npz --against gone.npz --no-cache", 1, "gone.npz"),
    # Objectives and trainers
    ("check", 2, "Missing argument 'SPEC...'"),
    ("check ntxnt", 2, "got 'ntxnt'; did you mean 'ntxent'?"),
    ("check ntxent ntxnt", 2, "got 'ntxnt'; did you mean 'ntxent'?"),
    ("check ntxent:tau=0", 1, "tau must be > 0; got 0.0"),
    ("check ./gone.py:Mine", 2, "plug-in file must exist; got './gone.py'"),
    ("check ntxent --processes 0", 2, "Invalid value for '--processes'"),
    ("check ntxent --format latex", 2, "'latex' is not one of 'table', 'json'"),
    ("check ntxent --seed=-1", 2, "Invalid value for '--seed'"),
    ("check", 2, "Missing argument 'SPEC...', or --trainer."),
    ("check ntxent --gradients sum", 2, "--gradients, --plain and --device need --trainer, which is missing"),
    ("check ntxent triplet --trainer ./train.py:step", 2, "must be given no SPEC, or that of its step; got 2"),
    ("check ntxnt --trainer ./train.py:step", 2, "got 'ntxnt'; did you mean 'ntxent'?"),
    ("check --trainer ./train.py:step --gradients most", 2, "'most' is not one of 'mean', 'sum'"),
    ("check --trainer ./gone.py:step", 2, "plug-in file must exist; got './gone.py'"),
    (
        "check --trainer ./train.py", 2,
        "./train.py must be followed by the name of a trainer; it defines step, shifted,",
    ),
    ("check --trainer ./train.py:gone", 2, "./train.py must define gone; it does not"),
    ("check --trainer ./train.py:one", 2, "./train.py:one must be called as step(queries, candidates)"),
    (
        "check --trainer ./train.py:number", 2,
        "number of ./train.py must be a function, a class or an object that computes",
    ),
    ("check --trainer open_clop", 2, "got 'open_clop'; did you mean 'open_clip'?"),
    ("check --trainer open_clip:loss=Clip", 2, "must be one of ClipLoss, SigLipLoss; got 'Clip'"),
    ("check --trainer grad_cache", 2, "grad_cache needs loss=...; got 'grad_cache'"),
    (
        "check --trainer sentence_transformers:options=scale", 2,
        "options must be KEY=VALUE, separated by spaces; got 'scale'",
    ),
    ("check --trainer ./train.py:step --plain ./train.py:gone", 2, "./train.py must define gone; it does not"),
    ("check --trainer ./train.py:step --device tpu", 1, "device must be auto, cpu or cuda; got 'tpu'"),
    ("check --trainer ./train.py:step --processes 99", 2, "Invalid value for '--processes'"),
    # Data, citations
    ("data features --data gone --out f", 2, "data set must be one of"),
    (
        "data features --data {scenes} --out f --backbone gone", 2,
        "feature must be one of hog_grid, resnet, transformers",
    ),
    (
        "data features --data {scenes} --out f --backbone hog-grid --split dev", 1,
        "splits must be of train, val, test; got dev",
    ),
    ("data features --data {scenes} --out f --backbone resnet", 2, "resnet needs weights=..."),
    ("data features --data {scenes} --out f --backbone transformers:path=gone", 1, "must be a folder with config.json"),
    ("data features --data scenes:captions=3 --out f", 1, "must have 5 captions each"),
    ("data synthetic-experts f --captions gone", 1, "annotations must be files like gone"),
    ("data synthetic-experts f --captions gone --models x", 2, "'x' is not one of 'mmt', 'ce'"),
    ("data random-words f --captions gone --lists x", 2, "'x' is not one of '1k-a', '1k-b', 'full'"),
    ("data ecir . k --name n", 1, "must hold train_set.p"),
    ("data msrvtt x a b", 2, "KIND must be one of expert, words, captions, chosen"),
    ("data msrvtt expert gone b", 1, "gone must exist"),
    ("data similarity gone b", 1, "gone must exist"),
    ("cite cited --statistic C_1", 1, "--statistic must be one of"),
    ("cite cited --direction q2d", 1, "--direction must be one of i2t, t2i"),
    ("cite cited --format csv", 2, "csv"),
]  # fmt: skip


@pytest.fixture
def folder(dump: Path, tiny_run: Path, tiny_checkpoint: Path, tiny_study: Path, tmp_path: Path) -> Path:
    """Write a folder with everything that can be wrong."""
    shutil.copy(tiny_checkpoint, "ckpt.pt")
    shutil.copytree(tiny_run, "run")
    shutil.copytree(tiny_study, "runs/tiny")
    shutil.copy(tiny_study.parent / "tiny.toml", "tiny.toml")
    write_checkpoints(Path("ckpt.pt"))
    write_dumps(dict(np.load(dump)))
    write_other_sides()
    write_folders_and_files()
    write_data_and_studies()
    assert lossscope("cocos dump.npz --objective ntxent --batch-size 8 --out cited").exit_code == 0
    return tmp_path


def write_checkpoints(good: Path) -> None:
    """Write damaged checkpoints, those of other versions and contents, and runs of two losses."""
    stored = {**torch.load(good, weights_only=True), "version": 2, "digests": {}}
    Path("text.pt").write_text("I am no checkpoint")
    Path("empty.pt").touch()
    Path("cut.pt").write_bytes(good.read_bytes()[:5000])
    Path("damaged.pt").write_bytes(b"PK\x03\x04" + bytes(300))
    weights = {k: v * torch.nan if v.is_floating_point() else v for k, v in stored["weights"].items()}
    changes: dict[str, dict[str, Any]] = {
        "foreign": {"training": argparse.Namespace(lr=1)}, "newer": {"version": 99}, "nan": {"weights": weights},
        "plugin": {"encoder": "./evil.py:Evil"}, "lost": {"data": "precomp:root=nowhere"},
    }  # fmt: skip
    for name, change in changes.items():
        torch.save({**stored, **change}, f"{name}.pt")
    torch.save(torch.ones(3), "tensor.pt")
    Path("evil.py").write_text("raise SystemExit('imported')")
    base = Checkpoint.load(good)
    for objective, seed in (("ntxent:tau=0.1", 0), ("ntxent:tau=0.1", 1), ("triplet:margin=0.2", 0)):
        values = {"objective": objective, "training": {**base.training, "objective": objective, "seed": seed}}
        Checkpoint(**{**vars(base), **values}).save(Path(f"{objective.partition(':')[0]}-{seed}.pt"))
    shutil.copy("ntxent-0.pt", "copy.pt")


def write_dumps(good: dict[str, Any]) -> None:
    """Write dumps of images and captions with a fault, or with contents other than dump.npz."""
    for name, row, value in (("nan", 3, np.nan), ("zero", 2, 0.0)):
        images = good["images"].copy()
        images[row] = value
        np.savez(f"{name}.npz", **{**good, "images": images})
    np.savez("object.npz", **{**good, "images": np.array([None] * 12)})
    np.savez("odd.npz", images=good["images"], captions=good["captions"][:23])
    np.savez("other.npz", **{**good, "caption_image": good["caption_image"][::-1]})
    np.savez("short.npz", images=good["images"][:7], captions=good["captions"][:7])
    np.savez("scalar.npz", a=np.float32(3))
    Path("empty.npz").touch()
    Path("cut.npz").write_bytes(Path("dump.npz").read_bytes()[:900])
    Path("cut.safetensors").write_bytes(b"\x40\x00\x00")
    healthy_dump(SIZES[0], Path())
    Path("damaged.npz").write_bytes(Path("healthy.npz").read_bytes()[:5000])
    ids = {"image_id": [f"{i}.jpg" for i in range(12)], "caption_id": [f"c{j}" for j in range(24)]}
    np.savez("images.npz", **good, **ids)
    Path("judged.csv").write_text("image,caption,positive\n0.jpg,c5,1\n3.jpg,c2,1\n")


def write_other_sides() -> None:
    """Write queries and documents with mined negatives, a guide, a labelled set, and shards."""
    rng = np.random.default_rng(0)
    sides: dict[str, Any] = {"queries": rng.normal(size=(24, 8)), "documents": rng.normal(size=(40, 8))}
    positives = np.unique(np.stack([rng.integers(0, 24, 30), rng.integers(0, 40, 30)], 1), axis=0)
    np.savez("pairs.npz", **sides, positives=positives, negatives=rng.integers(0, 40, (24, 3)))
    np.savez("guide.npz", **sides, positives=positives)
    np.savez("set.npz", embeddings=rng.normal(size=(40, 8)), labels=np.arange(40) % 8)
    for name in ("good.npz", "bad.npz"):
        np.savez(name, **sides, positives=positives)
    Path("shards").mkdir()
    for name in ("images", "captions"):
        np.save(f"shards/{name}-0.npy", rng.normal(size=(200, 8)))


def write_folders_and_files() -> None:
    """Write other programs' folders, logs and rows that lack what lossscope reads, and files that are no steps."""
    for name in ("emptyfolder", "empty", "usedfolder", "full", "mine", "badrun", "broken"):
        Path(name).mkdir()
    for file in ("usedfolder/thing.txt", "full/notes.txt", "mine/notes.txt", "notes.txt", "file"):
        Path(file).write_text("mine")
    for file in ("badrun/metrics.csv", "empty.csv", "empty.jsonl"):
        Path(file).touch()
    Path("broken/study.json").write_text('{"schema": ')
    Path("noloss.csv").write_text("step,accuracy,lr\n1,0.5,0.1\n2,0.6,0.1\n")
    Path("words.csv").write_text("step,loss\n1,high\n2,low\n")
    grid = [("a", x, y, x - y) for x in (0.0, 1.0) for y in (0.0, 1.0)]
    pd.DataFrame(grid, columns=["objective", "s_pos", "s_neg", "w_neg"]).to_csv("field.csv", index=False)
    Path("train.py").write_text(STEPS)


def write_data_and_studies() -> None:
    """Write files that are no pictures, trainings and studies with wrong keys, and a study that waits."""
    Path("bad.toml").write_text("learning_rate = 1\n")
    Path("pictures/images").mkdir(parents=True)
    Path("pictures/images/0.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    entries = [{"filename": f"{n}.png", "split": "train", "sentences": [{"raw": "a"}, {"raw": "b"}]} for n in (0, 1)]
    Image.new("RGB", (16, 16)).save("pictures/images/1.png")
    Path("pictures/dataset_toy.json").write_text(json.dumps({"images": entries}))
    text = Path("tiny.toml").read_text(encoding="utf-8")
    Path("changed.toml").write_text(text.replace("lr = 0.01", "lr = 0.02"), encoding="utf-8")
    Path("wrong.toml").write_text(f"nonsense = 1\n{text}", encoding="utf-8")
    shutil.copytree("runs/tiny", "waiting")
    for status in Path("waiting").glob("runs/*/status.json"):
        status.unlink()


def files_of(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return every file with its size and time, except those that a line may leave."""
    found = [Path(home, name) for top in folder.iterdir() if top.name not in WRITES for home, name in _below(top)]
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in zip(found, map(Path.stat, found), strict=True)}


def _below(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_file():
        yield str(path.parent), path.name
    for home, _, names in os.walk(path):
        yield from ((home, name) for name in names)


@each("words, code, said", LINES)
def test_what_cannot_work_is_one_message(words: str, code: int, said: str, folder: Path) -> None:
    before = files_of(folder)
    for prefix, typed in PREFIXES.items():
        words = words.replace(prefix, typed)
    result = lossscope(*words.split())
    escaped = result.exception is not None and not isinstance(result.exception, SystemExit)
    assert not escaped, f"{type(result.exception).__name__}: {result.exception}"
    assert said in message(result) and "Traceback" not in message(result)
    assert (result.exit_code, result.stdout) == (code, "")
    assert files_of(folder) == before
