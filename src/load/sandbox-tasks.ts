/*
 * The tasks of the load route that run in sandboxes, because they parse bytes from outside. Commands run them in their own
 * process, which serves nobody else.
 */
import { extname } from 'node:path';
import type { Logger } from 'pino';
import { Fault, InputError, type Problem } from '../domain/errors.ts';
import type { Reject } from '../domain/reject.ts';
import { type CsvBeginning, type Sniffed, sniffCsv } from '../formats/csv-sniff.ts';
import type { TaskHandler, Turn } from '../sandbox/sandbox.ts';
import { Sandboxes } from '../sandbox/sandboxes.ts';
import { type CauseSample, type RefusedSource, sampleCause } from './causes/reject-causes.ts';
import { type Look, type Looked, type LookOptions, look, renderFound } from './inspect/inspect-file.ts';
import type { ReceivedFile } from './receive/receive.ts';
import {
  type Conversion,
  type Convert,
  type Converted,
  convertFile,
  type Stretch,
} from './receive/unpack.ts';

/** The shapes of the tasks, by name. */
export interface LoadTasks {
  readonly convert: Task<Conversion, Stretch, Buffer, Converted>;
  readonly sniff: Task<CsvBeginning, never, never, Sniffed>;
  readonly look: Task<LookInput, Stretch, Buffer, Rendered>;
  /** Reads samples of the causes of a load; its question asks for the refused records of the next cause. */
  readonly causes: Task<CausesInput, number, readonly Reject[], readonly CauseSample[]>;
}

interface Task<Input, Question, Answer, Item> {
  readonly input: Input;
  readonly question: Question;
  readonly answer: Answer;
  readonly item: Item;
}

interface LookInput {
  readonly received: ReceivedFile;
  readonly options: LookOptions;
}

/** An inspection as it comes from another process: messages carry no classes. */
interface Rendered extends Pick<RenderedInspection, 'json' | 'column_names'> {
  readonly problems: readonly [Problem, ...Problem[]] | null;
}

/** An inspection that is written already: to render ten thousand columns takes half a second. */
export interface RenderedInspection extends Looked {
  /** The rendering of `renderFound`, as JSON. */
  readonly json: Uint8Array;
}

interface CausesInput {
  readonly source: RefusedSource;
  readonly causes: number;
}

type ReadStretch = (stretch: Stretch) => Promise<Buffer>;

const storeOf = (read: ReadStretch) => ({
  readRange: (_: unknown, start: number, end: number) => read([start, end]),
});

export const loadTasks: { readonly [Name in keyof LoadTasks]: TaskHandler<LoadTasks[Name]> } = {
  convert: convertFile,
  async *sniff(sample) {
    yield sniffCsv(sample);
  },
  async *look({ received, options }, read) {
    const found = await look(storeOf(read), received, options);
    const json = Buffer.from(JSON.stringify(renderFound(found)));
    yield { json, column_names: found.column_names, problems: found.problem?.problems ?? null };
  },
  async *causes({ source, causes }, readTried) {
    for (let at = 0; at < causes; at++) yield sampleCause(source, await readTried(at));
  },
};

/** Opens the sandboxes of a server or a worker. */
export function openLoadSandboxes(log: Logger): Sandboxes {
  // The program lies beside this file in the sources, and beside the bundle that contains this file.
  return new Sandboxes(new URL(`./sandbox-main${extname(import.meta.url)}`, import.meta.url), log);
}

/** Work to do in a sandbox; with `sandboxes` null, in this process. */
export interface LoadWork<Name extends keyof LoadTasks> extends Turn {
  readonly sandboxes: Sandboxes | null;
  readonly input: LoadTasks[Name]['input'];
  readonly ask: (question: LoadTasks[Name]['question']) => Promise<LoadTasks[Name]['answer']>;
}

export function runLoadTask<Name extends keyof LoadTasks>(
  task: Name,
  { sandboxes, ...work }: LoadWork<Name>,
): AsyncIterable<LoadTasks[Name]['item']> {
  const handler: TaskHandler<LoadTasks[Name]> = loadTasks[task];
  return sandboxes === null ? handler(work.input, work.ask) : sandboxes.run<LoadTasks[Name]>(task, work);
}

export function convertIn(sandboxes: Sandboxes | null, owner: number): Convert {
  return (input, ask, signal) =>
    runLoadTask('convert', { sandboxes, owner, isLong: true, input, ask, signal });
}

export function sniffIn(sandboxes: Sandboxes | null, owner: number) {
  return (input: CsvBeginning, signal: AbortSignal): Promise<Sniffed> => {
    const ask = async (question: never) => question;
    return only(runLoadTask('sniff', { sandboxes, owner, isLong: false, input, ask, signal }));
  };
}

export async function only<Item>(items: AsyncIterable<Item>): Promise<Item> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  const [item] = all;
  if (item === undefined) throw new Fault('a task came to nothing');
  return item;
}

export function lookIn(sandboxes: Sandboxes | null, owner: number): Look<RenderedInspection> {
  return async (store, received, options, signal) => {
    const ask = ([start, end]: Stretch) => store.readRange(received.ref, start, end);
    const input = { received, options };
    const work = { sandboxes, owner, isLong: false, input, ask, signal };
    const { problems, ...found } = await only(runLoadTask('look', work));
    return { ...found, problem: problems === null ? null : new InputError(...problems) };
  };
}
