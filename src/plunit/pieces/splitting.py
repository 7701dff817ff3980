"""Split convex polygons along the lines on which a unit is on a knot, until no cell has a line through it.

All edges are cut first (`mesh.cut_edges`). So a line through a cell enters and leaves it at a vertex, the cell is split
along the chord between the two, and the chord in turn is cut by the other lines. Rounds do that for all cells with a
line through them at once: each takes its first line, and the two parts wait for the next round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.pieces.arrays import WORD, Bools, Ints, Words, lowest_bit, runs, starts
from plunit.pieces.crossing import Crowded, Points, Pool, cuts
from plunit.pieces.layer import Layer
from plunit.pieces.mesh import Faces, faces_of, subdivide


@dataclass(frozen=True, eq=False)
class Splits:
    """What became of some cells: the finished parts, and the tree of splits that leads to them.

    points, faces: as given, with the new vertices and edges at the end.
    above: [words, cells], the knots that each part is above.
    root, node: [cells], the cell that it is a part of, and where it is in the tree.
    parent, line, child: split i divides node parent[i] by line[i] into child[i] below it and child[i] + 1 above it.
    """

    points: Points
    faces: Faces
    above: Words
    root: Ints
    node: Ints
    parent: Ints
    line: Ints
    child: Ints


def split(layer: Layer, points: Points, faces: Faces, root: Ints, next_node: int, room: int) -> Splits:
    """Split cells until no unit is below a knot in one corner of a cell and above it in another.

    Args:
        layer: the units and their knots.
        points: the vertices.
        faces: the cells, their edges cut.
        root: [cells], the node of each cell in the tree of splits.
        next_node: the number of the first new node.
        room: more cells than that are too many.
    """
    pool, node, done, tree = Pool(points), root, [], [np.zeros((3, 0), dtype=np.int64)]
    # every vertex has three or more edges in the end, so that there are at most two for each cell
    most = len(points) + 2 * room
    while len(faces):
        above, crossed = _sides(pool.points, faces)
        ready = (crossed == 0).all(axis=0)
        done.append(_Done(faces.where(ready), above[:, ready], root[ready], node[ready]))
        faces, parent, root = faces.where(~ready), node[~ready], np.repeat(root[~ready], 2)
        room -= len(done[-1].node)
        if 2 * len(faces) > room:
            raise Crowded
        if len(faces):
            word, mask = lowest_bit(crossed[:, ~ready])
            child = next_node + 2 * np.arange(len(faces))
            tree.append(np.stack([parent, word * WORD + np.log2(mask.astype(np.float64)).astype(np.int64), child]))
            node = np.stack([child, child + 1], axis=1).reshape(-1)
            next_node += len(node)
            faces = _halve(layer, pool, faces, *_chord(pool.points, faces, word, mask), most)
    return _collected(pool.points, faces.ends, done, np.concatenate(tree, axis=1))


@dataclass(frozen=True, eq=False)
class _Done:
    """Cells that no line passes through, as in Splits."""

    faces: Faces
    above: Words
    root: Ints
    node: Ints


def _collected(points: Points, ends: Ints, done: list[_Done], tree: Ints) -> Splits:
    halves = np.concatenate([part.faces.halves for part in done])
    sizes = np.concatenate([part.faces.sizes for part in done])
    above = np.concatenate([part.above for part in done], axis=1)
    root, node = (np.concatenate([getattr(part, name) for part in done]) for name in ("root", "node"))
    return Splits(points, faces_of(ends, halves, sizes), above, root, node, *tree)


def _sides(points: Points, faces: Faces) -> tuple[Words, Words]:
    """Return the lines that each cell is above in some corner, and those that pass through it."""
    corners, first = faces.tails, faces.offsets[:-1]
    above = np.bitwise_or.reduceat(points.above[:, corners], first, axis=1)
    below = np.bitwise_or.reduceat(points.below[:, corners], first, axis=1)
    return above, np.bitwise_and(above, below)


def _chord(points: Points, faces: Faces, word: Ints, mask: Words) -> tuple[Ints, Ints]:
    """Return the corners at which the line of each cell goes from above to below, and back, counter-clockwise.

    Both are on the line, since the edges are cut; they are put there once more, for then the line is done with in both
    parts, and splitting ends whatever rounding does.
    """
    corners = faces.tails
    cell = faces.owner
    over = points.above[word[cell], corners] & mask[cell] != 0
    under = points.below[word[cell], corners] & mask[cell] != 0
    down, up = turns(faces, over, under)
    down, up = following(faces, down), following(faces, up)
    for side, corner in ((points.above, down), (points.below, down), (points.above, up), (points.below, up)):
        np.bitwise_and.at(side, (word, corners[corner]), ~mask)
    return down, up


def turns(faces: Faces, over: Bools, under: Bools) -> tuple[Ints, Ints]:
    """Return the last corner over a line before the next one is under it, and the other way round, of each cell.

    Every cell must have both. A corner on the line between two others over it, which rounding can make where an edge is
    almost parallel, is passed over.
    """
    cell = faces.owner
    off = np.flatnonzero(over | under)
    count = np.bincount(cell[off], minlength=len(faces))
    after = np.arange(1, len(off) + 1)
    after[starts(count) + count - 1] = starts(count)
    turn = np.flatnonzero(over[off] != over[off][after])
    first = np.searchsorted(cell[off][turn], np.arange(len(faces)))
    one, two = off[turn[first]], off[turn[first + 1]]
    return np.where(over[one], one, two), np.where(over[one], two, one)


def following(faces: Faces, corner: Ints) -> Ints:
    """Return the corner after corner[i] of cell i."""
    return np.where(corner + 1 == faces.offsets[1:], faces.offsets[:-1], corner + 1)


def _halve(layer: Layer, pool: Pool, faces: Faces, down: Ints, up: Ints, most: int) -> Faces:
    """Replace each cell by its part below the chord from corner `down` to corner `up`, and its part above."""
    corners, sizes = faces.tails, faces.sizes
    chords = np.stack([corners[down], corners[up]], axis=1)
    points = pool.points
    parts, chord = cuts(layer, points, chords[:, 0], chords[:, 1], most - len(points))
    pieces, first, count = subdivide(chords, chord, len(points) + np.arange(len(chord)))
    cell = faces.owner
    rank = (np.arange(len(cell)) - down[cell]) % sizes[cell]
    arc = (up - down) % sizes
    length = np.stack([arc, sizes - arc], axis=1) + count[:, None] + 1
    start = starts(length.reshape(-1)).reshape(-1, 2)
    halves = np.empty(length.sum(), dtype=np.int64)
    below = rank < arc[cell]
    halves[np.where(below, start[cell, 0] + rank, start[cell, 1] + rank - arc[cell])] = faces.halves
    cell, rank = runs(count + 1)
    edge = len(faces.ends) + first[cell]
    halves[start[cell, 0] + arc[cell] + rank] = 2 * (edge + count[cell] - rank) + 1
    halves[start[cell, 1] + (sizes - arc)[cell] + rank] = 2 * (edge + rank)
    for part in parts:
        pool.append(part)
    return faces_of(np.concatenate([faces.ends, pieces]), halves, length.reshape(-1))
