import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LogSink } from '../../../src/telemetry/logger.ts';
import { waitFor } from '../../support/wait-for.ts';

test('lines are written in order, however many come at once, and what is left when the process ends', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'));
  const file = join(folder, 'log');
  const descriptor = openSync(file, 'a');
  try {
    const sink = new LogSink(descriptor, () => 'dropped\n');
    const lines = Array.from({ length: 5_000 }, (_, n) => `line ${n}\n`);
    for (const line of lines) sink.write(line);
    await waitFor('the lines', () => readFileSync(file, 'utf8') === lines.join(''));
    sink.write('a\n');
    sink.write('b\n');
    sink.flushSync();
    await waitFor('the last', () => readFileSync(file, 'utf8').length === lines.join('').length + 4);
    expect(sink.dropped).toBe(0);
  } finally {
    closeSync(descriptor);
    rmSync(folder, { recursive: true });
  }
});

test.skipIf(process.platform !== 'linux')('lines for a full disk are dropped and counted', async () => {
  const descriptor = openSync('/dev/full', 'w');
  try {
    const sink = new LogSink(descriptor, () => 'dropped\n');
    sink.write('one\n');
    await waitFor('the first to be lost', () => sink.dropped === 1);
    sink.write('two\n');
    sink.write('three\n');
    sink.flushSync();
    expect(sink.dropped).toBe(3);
    // More than waits for a disk that may have room again.
    for (let n = 0; n < 3; n++) sink.write(`${'x'.repeat(512 * 1024)}\n`);
    expect(sink.dropped).toBe(5);
  } finally {
    closeSync(descriptor);
  }
});
