# SPDX-License-Identifier: Apache-2.0
"""A folder for PYTHONPATH: programs that start with it there run on weft servers, unchanged (sitecustomize.py)."""
