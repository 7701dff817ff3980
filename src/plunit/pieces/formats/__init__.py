"""Networks and curves as files, and models of other packages as networks.

`load` (reading.py) recognises the format of a file by its content and returns a `Network`; `save` (exporter.py) writes
a `Network`, or its curve, in the format that the extension names. Most other modules hold one format: C (c_header.py),
ONNX, CSV and JSON, .nnet, properties in VNN-LIB, and the objects of Keras and scikit-learn. `onnx_graphs/` reads ONNX.
Open reading.py and exporter.py first; the check-lists for a new format are `Importer` (importer.py) and `Exporter`
(exporter.py).
"""
