# SPDX-License-Identifier: Apache-2.0
"""A job of torchelastic's that tells its steps: torch_elastic.py FOLDER, by torchrun; torch_elastic.py FOLDER store PORT is where its agents meet.

Each step averages gradients of a small model by Gloo and waits 10 ms; who starts again goes on from the last snapshot, which the first rank
writes every ten steps. A line of FOLDER/steps is "AGENT WORLD STEP"; the agent's environment says which one it is (AGENT).
"""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist

STEPS = 1000000
folder = sys.argv[1]
if sys.argv[2:3] == ['store']:
    store = dist.TCPStore('127.0.0.1', int(sys.argv[3]), is_master=True, wait_for_workers=False)
    print('ready', flush=True)
    sys.stdin.read()
    sys.exit()

torch.set_num_threads(1)
dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=60))
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 0.02)
snapshot, first = os.path.join(folder, 'snapshot'), 0
if os.path.exists(snapshot):
    saved = torch.load(snapshot)
    first = saved['step']
    model.load_state_dict(saved['model'])
    optimizer.load_state_dict(saved['optimizer'])
replica = torch.nn.parallel.DistributedDataParallel(model)
lines = os.open(os.path.join(folder, 'steps'), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for step in range(first + 1, STEPS + 1):
    x = torch.randn(64 // dist.get_world_size(), 8)
    loss = torch.nn.functional.mse_loss(replica(x), torch.tanh(x.sum(1, keepdim=True)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0 and step % 10 == 0:
        torch.save({'step': step, 'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, snapshot + '.new')
        os.replace(snapshot + '.new', snapshot)
    os.write(lines, b'%s %d %d\n' % (os.environ['AGENT'].encode(), dist.get_world_size(), step))
    time.sleep(0.01)
