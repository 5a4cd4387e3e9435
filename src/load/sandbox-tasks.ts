/* Tasks that parse untrusted bytes in a sandbox, or in the process of a command. */
import { Fault } from '../base/errors.ts';
import { runTask, type Sandboxes } from '../base/sandbox/sandboxes.ts';
import type { Reject } from '../domain/reject.ts';
import { type CsvBeginning, type Sniffed, sniffCsv } from '../formats/csv-sniff.ts';
import { type DialectChunk, type PlainChunk, rewriteChunk } from './receive/rewrite-csv.ts';
import { type Convert, convertFile } from './receive/unpack.ts';
import { type CauseSample, type RefusedSource, sampleCause } from './rejects/causes.ts';

async function* sniff(sample: CsvBeginning): AsyncGenerator<Sniffed> {
  yield sniffCsv(sample);
}

async function* rewrite(chunk: DialectChunk): AsyncGenerator<PlainChunk> {
  yield rewriteChunk(chunk);
}

interface RefusedCauses {
  readonly source: RefusedSource;
  readonly causes: number;
}

/** `readRejectsOf(n)` returns some refused records with the n-th cause. */
export async function* sampleCauses(
  { source, causes }: RefusedCauses,
  readRejectsOf: (cause: number) => Promise<readonly Reject[]>,
): AsyncGenerator<readonly CauseSample[]> {
  for (let cause = 0; cause < causes; cause++) yield sampleCause(source, await readRejectsOf(cause));
}

export const loadTasks = { convert: convertFile, sniff, rewrite, causes: sampleCauses };

export function convertIn(sandboxes: Sandboxes | null, owner: number): Convert {
  return (input, ask, signal) =>
    runTask(sandboxes, 'convert', convertFile, { owner, isLong: true, input, ask, signal });
}

/**
 * Runs a task that has one result and cannot request data. Without sandboxes, runs the task in this
 * process.
 */
function short<Input, Item>(task: string, handler: (input: Input) => AsyncIterable<Item>) {
  return (sandboxes: Sandboxes | null, owner: number) =>
    (input: Input, signal: AbortSignal): Promise<Item> => {
      const ask = async (question: never) => question;
      return only(runTask(sandboxes, task, handler, { owner, isLong: false, input, ask, signal }));
    };
}

export const sniffIn = short('sniff', sniff);
export const rewriteIn = short('rewrite', rewrite);

export async function only<Item>(items: AsyncIterable<Item>): Promise<Item> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  const [item] = all;
  if (item === undefined) throw new Fault('a task came to nothing');
  return item;
}
