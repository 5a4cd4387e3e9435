import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Fault, InputError, inputError, type Problem, TransientError } from '../errors.ts';
import { packageRoot } from '../package-root.ts';

const SANDBOX_START_MS = 30_000;
/**
 * An item that is still running after this many periods of `itemMs` fails, even if it has processor
 * time left. Either the machine is too busy, or the task waits for something that does not come.
 */
const MAX_PERIODS = 20;

/**
 * Scheduling priority of a sandbox. Because the value is positive, the processes that serve
 * requests go first.
 */
const niceness = 10;

/**
 * Signals that end a process without memory. V8 aborts a process whose heap is full. The kernel
 * kills a process if the machine has no memory left.
 */
const outOfMemory: ReadonlySet<NodeJS.Signals> = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGKILL']);

export type TaskHandler<Input, Question, Answer, Item> = (
  input: Input,
  ask: (question: Question) => Promise<Answer>,
) => AsyncIterable<Item>;

export type SandboxTasks = Readonly<Record<string, TaskHandler<never, unknown, never, unknown>>>;

/** `owner` is an environment's id. `isLong` tasks can take minutes. */
export interface Turn {
  readonly owner: number;
  readonly isLong: boolean;
  readonly signal: AbortSignal;
}

type ToSandbox =
  | { readonly kind: 'begin'; readonly task: string; readonly input: unknown }
  | { readonly kind: 'more' }
  | { readonly kind: 'answer'; readonly question: number; readonly answer: unknown };

/**
 * Messages from a sandbox. One `item` answers each `more` from the parent. An `ask` may come at any
 * time.
 */
type FromSandbox =
  | { readonly kind: 'ready' }
  | { readonly kind: 'ask'; readonly question: number; readonly content: unknown }
  | { readonly kind: 'item'; readonly item: unknown }
  | { readonly kind: 'end' }
  | { readonly kind: 'refused'; readonly problems: readonly [Problem, ...Problem[]] }
  | { readonly kind: 'failed'; readonly message: string; readonly stack: string | undefined };

export interface SandboxLimits {
  readonly heapMib: number;
  /**
   * Maximum processor time per item. On systems where the processor time cannot be read, the
   * elapsed time counts, without the waits for answers.
   */
  readonly itemMs: number;
}

interface Waiting {
  readonly resolve: (item: IteratorResult<unknown, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/** Parses untrusted bytes in a child process, one task at a time, with limited heap and time. */
export class Sandbox {
  ended: Error | null = null;
  isFree = true;
  readonly #child: ChildProcess;
  readonly #limits: SandboxLimits;
  #ask: (question: unknown) => Promise<unknown> = async () => undefined;
  #waiting: Waiting | null = null;
  /** Number of unanswered questions. While there are any, the task's clock is stopped. */
  #openQuestions = 0;
  /** False while the process starts. The time of the start does not count for the task. */
  #isReady = false;
  #leftMs = 0;
  #since = 0;
  /** Number of periods of `itemMs` that have passed since the item began. */
  #periods = 0;
  /** Processor time of the process when the item began. */
  #processorMsBefore = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * Starts the child process.
   * @throws TransientError if the process cannot start.
   */
  constructor(file: URL, limits: SandboxLimits, onEnd: (ending: string) => void) {
    this.#limits = limits;
    this.#child = start(fileURLToPath(file), limits.heapMib);
    this.#child.on('message', (message) => this.#receive(message as FromSandbox));
    this.#child.once('exit', (code, signal) => {
      const ending = signal ?? `exit code ${code}`;
      onEnd(ending);
      if (signal === null) this.#end(new Fault(`a sandbox ended with ${ending}`));
      else if (outOfMemory.has(signal)) this.#end(tooMuch('memory'));
      else this.#end(new TransientError(`a sandbox was ended by ${signal}`));
    });
    this.#child.once('error', (cause) => {
      this.#end(Object.assign(new TransientError('a process cannot be started'), { cause }));
    });
    this.#hold(false);
  }

  begin(task: string, input: unknown, ask: (question: unknown) => Promise<unknown>): void {
    this.#ask = ask;
    this.isFree = false;
    this.#send({ kind: 'begin', task, input });
  }

  /**
   * Returns the next item of the task.
   * @throws InputError if the task refuses its input or needs too much memory or time. Errors of
   * `ask` are also thrown.
   */
  next(): Promise<IteratorResult<unknown, undefined>> {
    return new Promise((resolve, reject) => {
      if (this.ended !== null) return reject(this.ended);
      this.#waiting = { resolve, reject };
      this.#leftMs = this.#limits.itemMs;
      this.#periods = 0;
      this.#processorMsBefore = processorMs(this.#child.pid) ?? 0;
      this.#hold(true);
      this.#run();
      this.#send({ kind: 'more' });
    });
  }

  kill(error: Error): void {
    this.#end(error);
    this.#child.kill('SIGKILL');
  }

  #receive(message: FromSandbox): void {
    switch (message.kind) {
      case 'ready':
        this.#isReady = true;
        this.#processorMsBefore = processorMs(this.#child.pid) ?? 0;
        if (this.#waiting !== null) this.#run();
        break;
      case 'ask':
        this.#answer(message.question, message.content);
        break;
      case 'item':
        this.#settle(({ resolve }) => resolve({ done: false, value: message.item }));
        break;
      case 'end':
        this.isFree = true;
        this.#settle(({ resolve }) => resolve({ done: true, value: undefined }));
        break;
      case 'refused':
        this.isFree = true;
        this.#settle(({ reject }) => reject(new InputError(...message.problems)));
        break;
      case 'failed':
        this.#settle(({ reject }) => reject(unforeseen(message)));
        break;
      default:
        message satisfies never;
    }
  }

  #answer(question: number, content: unknown): void {
    this.#openQuestions++;
    this.#pause();
    this.#ask(content).then(
      (answer) => {
        this.#openQuestions--;
        if (this.ended !== null) return;
        if (this.#openQuestions === 0 && this.#waiting !== null) this.#run();
        this.#send({ kind: 'answer', question, answer });
      },
      (error: Error) => this.kill(error),
    );
  }

  #settle(finish: (waiting: Waiting) => void): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    this.#pause();
    this.#hold(false);
    if (waiting !== null) finish(waiting);
  }

  #end(error: Error): void {
    this.ended ??= error;
    const reason = this.ended;
    this.#settle(({ reject }) => reject(reason));
  }

  #run(): void {
    clearTimeout(this.#timer);
    this.#since = performance.now();
    this.#timer = this.#isReady
      ? setTimeout(() => this.#expire(), this.#leftMs)
      : setTimeout(() => this.kill(new TransientError('a process took too long to start')), SANDBOX_START_MS);
  }

  /**
   * Ends the item if it has used up its processor time. Otherwise, the item gets another period.
   */
  #expire(): void {
    const { itemMs } = this.#limits;
    const now = processorMs(this.#child.pid);
    if (now === null || now - this.#processorMsBefore >= itemMs) {
      this.kill(tooMuch('time'));
    } else if (++this.#periods === MAX_PERIODS) {
      this.kill(new TransientError('the machine is too busy to read the file; try again later'));
    } else {
      this.#leftMs = itemMs;
      this.#run();
    }
  }

  #pause(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leftMs -= performance.now() - this.#since;
  }

  #send(message: ToSandbox): void {
    this.#child.send(message, () => undefined);
  }

  /** A busy sandbox keeps this process alive. */
  #hold(isBusy: boolean): void {
    if (isBusy) {
      this.#child.ref();
      this.#child.channel?.ref();
    } else {
      this.#child.unref();
      this.#child.channel?.unref();
    }
  }
}

/** Linux counts processor time in hundredths of a second. */
const tickMs = 10;

/** Returns the processor time of a process, or `null` if it cannot be read. */
function processorMs(pid: number | undefined): number | null {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // In /proc/PID/stat, the program's name is in brackets and can contain blanks.
    const fields = status.slice(status.lastIndexOf(')') + 2).split(' ');
    return tickMs * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return null;
  }
}

/**
 * Starts a child process without the environment of this process, which contains keys and
 * passwords.
 */
function start(path: string, heapMib: number): ChildProcess {
  const loader = extname(path) === '.ts' ? ['--import', 'tsx'] : [];
  const heap = [`--max-old-space-size=${heapMib}`, '--max-semi-space-size=8'];
  try {
    const child = fork(path, [], {
      cwd: packageRoot,
      env: {},
      execArgv: [...loader, ...heap],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    if (child.pid !== undefined) setPriority(child.pid, niceness);
    return child;
  } catch (cause) {
    throw Object.assign(new TransientError('a process cannot be started'), { cause });
  }
}

function unforeseen({ message, stack }: { message: string; stack: string | undefined }): Fault {
  return Object.assign(new Fault(`a task failed in its sandbox: ${message}`), { cause: stack });
}

function tooMuch(what: 'memory' | 'time'): InputError {
  return inputError('payload_too_large', `Reading it takes more ${what} than one file or record may use`);
}

/** In the child process: runs the parent's tasks, one at a time, until the parent exits. */
export function serveTasks(tasks: SandboxTasks): void {
  const byName = new Map(
    Object.entries(tasks) as [string, TaskHandler<unknown, unknown, unknown, unknown>][],
  );
  process.once('disconnect', () => process.exit());
  const answers = new Map<number, (answer: unknown) => void>();
  let lastQuestion = 0;
  let items: AsyncIterator<unknown> | undefined;
  const ask = (question: unknown): Promise<unknown> =>
    new Promise((resolve) => {
      answers.set(++lastQuestion, resolve);
      send({ kind: 'ask', question: lastQuestion, content: question });
    });
  process.on('message', (received: ToSandbox) => {
    switch (received.kind) {
      case 'begin':
        items = byName.get(received.task)?.(received.input, ask)[Symbol.asyncIterator]();
        break;
      case 'more':
        void next(items).then(send);
        break;
      case 'answer':
        answers.get(received.question)?.(received.answer);
        answers.delete(received.question);
        break;
      default:
        received satisfies never;
    }
  });
  send({ kind: 'ready' });
}

async function next(items: AsyncIterator<unknown> | undefined): Promise<FromSandbox> {
  try {
    if (items === undefined) throw new Error('there is no such task');
    const { done, value } = await items.next();
    return done === true ? { kind: 'end' } : { kind: 'item', item: value };
  } catch (error) {
    if (error instanceof InputError) return { kind: 'refused', problems: error.problems };
    const { message, stack } = error instanceof Error ? error : new Error(String(error));
    return { kind: 'failed', message, stack };
  }
}

function send(message: FromSandbox): void {
  process.send?.(message);
}
