# SPDX-License-Identifier: Apache-2.0
"""Mixed tensor work whose every block is filled with a pattern and checked before it is freed (scripts/lab/live_proofs.sh).

Threads with streams of their own ask for blocks, fill them, hand them to each other with record_stream, check and free them
without waiting for the card; CUDA graphs are captured, replayed and dropped; a small training runs twice on equal input and must give
equal bits; requests that do not fit raise and are tried again; the cache is emptied now and then.
"""
import gc
import random
import threading
import time

import torch

MIB = 1 << 20


class Count:
    """What was done; `bad` are counters on the card, one per stream, read at the end."""

    def __init__(self):
        self.lock, self.bad = threading.Lock(), {}
        self.done = dict(blocks=0, bytes=0, handed=0, graphs=0, replays=0, trainings=0, ooms=0, errors=0, trims=0)

    def add(self, **more):
        with self.lock:
            for key, value in more.items():
                self.done[key] += value

    def of(self, stream, kind="blocks"):
        """The counter of a stream; call it in that stream."""
        with self.lock:
            if (stream, kind) not in self.bad:
                self.bad[stream, kind] = torch.zeros((), dtype=torch.int64, device="cuda")
            return self.bad[stream, kind]

    def wrong(self):
        """{kind: how many}"""
        torch.cuda.synchronize()
        found = dict.fromkeys(("blocks", "replays", "trainings"), 0)
        for (_, kind), bad in self.bad.items():
            found[kind] += int(bad.item())
        return found


class Storm:
    def __init__(self, live_bytes, seed, biggest=256 * MIB):
        self.most, self.biggest, self.seed = live_bytes, biggest, seed
        self.count, self.lock, self.held, self.bytes, self.serial = Count(), threading.Lock(), [], 0, seed << 20
        gc.freeze()  # every capture collects
        self.ramp = torch.arange(biggest // 4, dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()

    def size(self, rng):
        low, high = rng.choice(((4, MIB), (4, MIB), (MIB, 20 * MIB), (20 * MIB, 256 * MIB)) if rng.random() < .4
                               else ((512, MIB),))
        high = min(high, self.biggest)
        return max(4, int(min(low, high) * (high / min(low, high)) ** rng.random()) & ~3)

    # ---- a block: element i is ramp[i] + its number ----

    def put(self, rng, stream):
        size = self.size(rng)
        with torch.cuda.stream(stream):
            block = torch.empty(size // 4, dtype=torch.int32, device="cuda")
            with self.lock:
                self.serial = (self.serial + 1) % (1 << 30)
                number = self.serial
            torch.add(self.ramp[:size // 4], number, out=block)
        with self.lock:
            self.held.append((block, number, stream))
            self.bytes += size

    def take(self, rng, stream=None):
        """Checks a block and frees it, on `stream`, where it may not be at home."""
        with self.lock:
            if not self.held:
                return
            at = rng.randrange(len(self.held))
            self.held[at], self.held[-1] = self.held[-1], self.held[at]
            block, number, home = self.held.pop()
            self.bytes -= block.numel() * 4
        stream = stream or home
        with torch.cuda.stream(stream):
            if stream != home:
                stream.wait_stream(home)
                block.record_stream(stream)
                self.count.add(handed=1)
            if rng.random() < .1:
                torch.cuda._sleep(rng.randrange(300000))  # the card lags behind: whoever hands the block on too early is seen
            self.check(block, number, stream)

    def check(self, block, number, stream):
        torch.sub(block, self.ramp[:block.numel()], out=block)
        low, high = torch.aminmax(block)
        self.count.of(stream).add_((low != number) | (high != number))
        self.count.add(blocks=1, bytes=block.numel() * 4)

    # ---- threads ----

    def guarded(self, what, *arguments):
        try:
            what(*arguments)
            return True
        except torch.OutOfMemoryError:
            self.count.add(ooms=1)
        except RuntimeError as error:
            self.count.add(errors=1)
            self.last = str(error)[:300]
        return False

    def blocks(self, until, seed):
        rng, mine = random.Random(seed), [torch.cuda.Stream() for _ in range(2)]
        mine.append(torch.cuda.default_stream())
        while time.monotonic() < until:
            stream = rng.choice(mine)
            if self.bytes > self.most or (self.held and rng.random() < .45):
                self.guarded(self.take, rng, stream if rng.random() < .4 else None)
            elif not self.guarded(self.put, rng, stream):
                for _ in range(len(self.held) // 2):
                    self.guarded(self.take, rng)

    def work(self, until, seed):
        rng, graphs, stream = random.Random(seed), [], torch.cuda.Stream()
        model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512)).to("cuda")
        pool = torch.cuda.graph_pool_handle()
        torch.cuda.synchronize()
        while time.monotonic() < until:
            dice = rng.random()
            if dice < .03:
                self.guarded(self.capture, rng, graphs, stream, pool)
            elif dice < .035 and graphs:
                graphs.clear()
            elif dice < .35 and graphs:
                self.guarded(self.replay, rng.choice(graphs), stream)
            elif dice < .36:
                self.guarded(self.too_much, rng)
            elif dice < .37:
                torch.cuda.empty_cache()
                self.count.add(trims=1)
            else:
                self.guarded(self.train, rng, model, stream)
        graphs.clear()

    def capture(self, rng, graphs, stream, pool):
        number, size = rng.randrange(1 << 20), self.size(rng) % (16 * MIB) // 4 + 1
        x = torch.empty(size, dtype=torch.int32, device="cuda")
        torch.add(self.ramp[:size], number, out=x)
        x.record_stream(stream)  # it is dropped while the last replay may still read it
        stream.wait_stream(torch.cuda.current_stream())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=rng.choice((pool, None)), stream=stream, capture_error_mode="thread_local"):
            y = x + 1
            for _ in range(rng.randrange(1, 6)):
                y = y * 1 + 1 - 1
        graphs.append((graph, x, y, number + 1))
        del graphs[:-8]
        self.count.add(graphs=1)

    def replay(self, row, stream):
        graph, _, y, number = row
        with torch.cuda.stream(stream):
            graph.replay()
            low, high = torch.aminmax(y - self.ramp[:y.numel()])
            self.count.of(stream, "replays").add_((low != number) | (high != number))
        self.count.add(replays=1)

    def too_much(self, rng):
        free, total = torch.cuda.mem_get_info()
        torch.empty(total - rng.randrange(1 << 30), dtype=torch.uint8, device="cuda")

    def train(self, rng, model, stream):
        rows, losses = rng.randrange(1, 512), []
        for p in model.parameters():
            p.grad = None  # the last one may have run out of memory half-way
        with torch.cuda.stream(stream):
            for _ in range(2):
                x = (self.ramp[:rows * 512] % 97).view(rows, 512).float()
                loss = model(x).square().mean()
                loss.backward()
                losses.append(sum(p.grad.double().sum() for p in model.parameters()) + loss)
                for p in model.parameters():
                    p.grad = None
            self.count.of(stream, "trainings").add_(losses[0] != losses[1])
        self.count.add(trainings=1)

    # ---- runs ----

    def planted(self):
        """A check that cannot fail says nothing: one wrong element must be seen. True: it was."""
        stream = torch.cuda.current_stream()
        block = torch.add(self.ramp[:1000], 7)
        block[500] += 1
        self.check(block, 7, stream)
        seen = self.count.wrong()["blocks"]
        self.count.of(stream).sub_(seen)
        self.count.add(blocks=-1, bytes=-4000)
        return seen == 1

    def run(self, seconds, note=None):
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=what, args=(until, self.seed * 10 + i), daemon=True)
                   for i, what in enumerate((self.blocks, self.blocks, self.work))]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and time.monotonic() < until + 15:
            time.sleep(2)
            if note:
                note(dict(self.count.done))
        self.empty(random.Random(0))
        return dict(self.count.done, wrong=self.count.wrong(), unfinished=sum(t.is_alive() for t in threads))

    def empty(self, rng):
        while self.held:
            self.guarded(self.take, rng)

    def short(self, operations):
        """One thread, few kernels: for compute-sanitizer and for failing driver calls."""
        rng, streams = random.Random(self.seed), [torch.cuda.default_stream(), torch.cuda.Stream()]
        for i in range(operations):
            stream = rng.choice(streams)
            if self.bytes > self.most or (self.held and rng.random() < .45):
                self.guarded(self.take, rng, stream)
            else:
                self.guarded(self.put, rng, stream)
            if i % 50 == 49:
                self.guarded(torch.cuda.empty_cache)
        self.empty(rng)
        return dict(self.count.done, wrong=self.count.wrong(), last=getattr(self, "last", None))

    def graphs(self):
        """Three captures in one thread, each replayed twice, beside blocks."""
        rng, found, stream, pool = random.Random(1), [], torch.cuda.Stream(), torch.cuda.graph_pool_handle()
        for _ in range(3):
            self.guarded(self.capture, rng, found, stream, pool)
            for _ in range(2):
                self.guarded(self.put, rng, stream)
                self.guarded(self.replay, found[-1], stream)
        found.clear()
        self.empty(rng)
        return dict(self.count.done, wrong=self.count.wrong(), last=getattr(self, "last", None))

    def release(self):
        """Everything back; what is then still live or reserved by the book, after so many times of emptying the cache."""
        self.held.clear()
        self.count.bad.clear()
        self.ramp = None
        gc.collect()
        torch.cuda.synchronize()
        for times in range(1000):  # every n-th call still fails
            torch.cuda.empty_cache()
            if not torch.cuda.memory_reserved():
                break
        return dict(live=torch.cuda.memory_allocated(), reserved=torch.cuda.memory_reserved(), emptied=times + 1)
