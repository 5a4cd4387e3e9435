import { execFile } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { collapseRepeats, LogSink } from '../../../src/base/logger.ts';
import { cleanUpAfter } from '../../support/cleanups.ts';
import { waitFor } from '../../support/wait-for.ts';

function collect() {
  const lines: Record<string, unknown>[] = [];
  const clock = { ms: 0 };
  const log = pino(
    { base: null, hooks: { logMethod: collapseRepeats(() => clock.ms) } },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  );
  return { log, lines, clock };
}

const failure = new Error('connect ECONNREFUSED');

test('a repeated failure is logged once a minute with its count, between other lines', () => {
  const { log, lines, clock } = collect();
  for (let attempt = 0; attempt < 50; attempt++) log.warn({ err: failure }, 'queue worker error');
  log.warn({ err: new Error('another') }, 'queue worker error');
  log.warn('queue worker error');
  clock.ms = 60_000;
  for (let attempt = 0; attempt < 5; attempt++) log.warn({ err: failure }, 'queue worker error');
  expect(lines.map(({ err, repeated }) => [(err as Error | undefined)?.message, repeated])).toEqual([
    [failure.message, undefined],
    ['another', undefined],
    [undefined, undefined],
    [failure.message, 49],
  ]);
});

test('lines are written in order, and the last ones when the process ends', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'));
  const file = join(folder, 'log');
  const descriptor = openSync(file, 'a');
  cleanUpAfter('test', async () => {
    closeSync(descriptor);
    rmSync(folder, { recursive: true });
  });
  const sink = new LogSink(descriptor, () => 'dropped\n');
  const lines = Array.from({ length: 5_000 }, (_, n) => `line ${n}\n`);
  for (const line of lines) sink.write(line);
  await waitFor('the lines', () => readFileSync(file, 'utf8') === lines.join(''));
  sink.write('a\n');
  sink.write('b\n');
  sink.flushSync();
  await waitFor('the last', () => readFileSync(file, 'utf8').length === lines.join('').length + 4);
  expect(sink.dropped).toBe(0);
});

test('lines that are dropped while others are written are reported', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'));
  const file = join(folder, 'log');
  const descriptor = openSync(file, 'a');
  cleanUpAfter('test', async () => {
    closeSync(descriptor);
    rmSync(folder, { recursive: true });
  });
  const sink = new LogSink(descriptor, (count) => `${count} dropped\n`);
  const long = `${'x'.repeat(512 * 1024)}\n`;
  // While the first line is being written, the sink has room for only one of the four long lines,
  // and drops three.
  for (const line of ['first\n', long, long, long, long]) sink.write(line);
  await waitFor('the next line', () => readFileSync(file, 'utf8').length > long.length);
  sink.write('last\n');
  await waitFor('the last line', () => readFileSync(file, 'utf8').endsWith('last\n'));
  expect(readFileSync(file, 'utf8').replaceAll(long, 'long\n')).toBe('first\n3 dropped\nlong\nlast\n');
});

test.skipIf(process.platform !== 'linux')('lines on a full disk are counted as lost', async () => {
  const descriptor = openSync('/dev/full', 'w');
  cleanUpAfter('test', () => closeSync(descriptor));
  const sink = new LogSink(descriptor, () => 'dropped\n');
  sink.write('one\n');
  await waitFor('the first to be lost', () => sink.dropped === 1);
  sink.write('two\n');
  sink.write('three\n');
  sink.flushSync();
  expect(sink.dropped).toBe(3);
  // While the disk is full, the sink keeps lines only up to a limit, which these lines exceed.
  for (let n = 0; n < 3; n++) sink.write(`${'x'.repeat(512 * 1024)}\n`);
  expect(sink.dropped).toBe(5);
});

test('fields that may hold a secret are written without their value', async () => {
  const fields = ['authorization', 'api_key', 'key', 'secret', 'password', 'metadata', 'url', 'databaseUrl'];
  const line = {
    ...Object.fromEntries(fields.map((name) => [name, 'hidden'])),
    headers: { authorization: 'hidden' },
    req: { headers: { authorization: 'hidden' } },
  };
  const program = `
    import { createLogger } from './src/base/logger.ts';
    createLogger('info', 'test').info(${JSON.stringify(line)}, 'shown');`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', program];
  const { stderr } = await promisify(execFile)(process.execPath, args);
  expect(JSON.parse(stderr)).toMatchObject({ msg: 'shown', secret: '[redacted]' });
  expect(stderr).not.toContain('hidden');
});
