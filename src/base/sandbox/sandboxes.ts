// Untrusted bytes are parsed in separate processes, so that a hang or a full heap affects only one
// task. The caller of that task gets the reason. Limits per owner leave processes for other owners.
import type { Logger } from 'pino';
import { Interrupted, TransientError } from '../errors.ts';
import { Sandbox, type SandboxLimits, type TaskHandler, type Turn } from './sandbox.ts';

/**
 * Maximum number of sandboxes in total, per owner, and for long tasks. One sandbox stays free for
 * short tasks, for which a person waits.
 */
const MAX_SANDBOXES = 4;
const MAX_SANDBOXES_PER_OWNER = 2;
const MAX_LONG_TASKS = 3;
const SANDBOX_HEAP_MIB = 192;
const SANDBOX_ITEM_MS = 30_000;
const SANDBOX_WAIT_MS = 30_000;
const SANDBOX_IDLE_MS = 60_000;

export interface SandboxesOptions extends SandboxLimits {
  readonly atATime: number;
  readonly perOwner: number;
  readonly longAtATime: number;
  /**
   * Maximum number of milliseconds that a task waits for its turn, and that an idle process waits
   * for a task.
   */
  readonly waitMs: number;
  readonly idleMs: number;
}

const defaults: SandboxesOptions = {
  heapMib: SANDBOX_HEAP_MIB,
  itemMs: SANDBOX_ITEM_MS,
  atATime: MAX_SANDBOXES,
  perOwner: MAX_SANDBOXES_PER_OWNER,
  longAtATime: MAX_LONG_TASKS,
  waitMs: SANDBOX_WAIT_MS,
  idleMs: SANDBOX_IDLE_MS,
};

export interface Work<Input, Question, Answer> extends Turn {
  readonly input: Input;
  readonly ask: (question: Question) => Promise<Answer>;
}

interface Idle {
  readonly sandbox: Sandbox;
  readonly timer: NodeJS.Timeout;
}

interface Queued {
  readonly turn: Turn;
  readonly begin: () => void;
}

export class Sandboxes {
  readonly #file: URL;
  readonly #log: Logger;
  readonly #options: SandboxesOptions;
  readonly #all = new Set<Sandbox>();
  readonly #idle: Idle[] = [];
  readonly #running = new Set<Turn>();
  readonly #queued: Queued[] = [];
  #isClosed = false;

  constructor(file: URL, log: Logger, options: Partial<SandboxesOptions> = {}) {
    this.#file = file;
    this.#log = log;
    this.#options = { ...defaults, ...options };
  }

  /**
   * Runs a task in a sandbox when it is its turn, and yields the items of the task.
   * @throws InputError if the task refuses its input (`payload_too_large` if it needs too much
   * memory or time), TransientError if it gets no turn in time. Errors from `ask` and the signal's
   * reason are also thrown.
   */
  async *run<Item, Question, Answer>(
    task: string,
    work: Work<unknown, Question, Answer>,
  ): AsyncGenerator<Item> {
    const { input, ask, signal } = work;
    await this.#awaitTurn(work);
    let sandbox: Sandbox | null = null;
    // Ends the turn. Called at the end of the task, on abort, or when the caller stops reading
    // early.
    const end = (): void => {
      signal.removeEventListener('abort', end);
      if (!this.#running.delete(work)) return;
      if (sandbox !== null) this.#release(sandbox);
      this.#beginQueued();
    };
    signal.addEventListener('abort', end);
    try {
      signal.throwIfAborted();
      sandbox = this.#take();
      sandbox.begin(task, input, (question) => ask(question as Question));
      for (;;) {
        const { done, value } = await sandbox.next();
        if (done === true) return;
        yield value as Item;
        signal.throwIfAborted();
      }
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      end();
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const { timer } of this.#idle.splice(0)) clearTimeout(timer);
    for (const sandbox of this.#all) sandbox.kill(new Interrupted('the service stops'));
  }

  #runningOf(owner: number): number {
    return [...this.#running].filter((turn) => turn.owner === owner).length;
  }

  #mayRun({ owner, isLong }: Turn): boolean {
    const { atATime, perOwner, longAtATime } = this.#options;
    if (this.#running.size >= atATime || this.#runningOf(owner) >= perOwner) return false;
    // An owner may run only one long task at a time, so that a sandbox is left for the owner's
    // short tasks.
    const long = [...this.#running].filter((turn) => turn.isLong);
    return !isLong || (long.length < longAtATime && long.every((turn) => turn.owner !== owner));
  }

  #awaitTurn(turn: Turn): Promise<void> {
    const { signal } = turn;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        this.#queued.splice(this.#queued.indexOf(queued), 1);
      };
      const fail = (error: unknown) => {
        leave();
        reject(error);
      };
      const begin = () => {
        leave();
        this.#running.add(turn);
        resolve();
      };
      const queued: Queued = { turn, begin };
      const abort = () => fail(signal.reason);
      const timer = setTimeout(
        () => fail(new TransientError('too many files are being read; try again later')),
        this.#options.waitMs,
      );
      signal.addEventListener('abort', abort);
      this.#queued.push(queued);
      this.#beginQueued();
    });
  }

  /** The next task is the oldest one of the owner who has the fewest running tasks. */
  #beginQueued(): void {
    for (;;) {
      const [first, ...others] = this.#queued.filter(({ turn }) => this.#mayRun(turn));
      if (first === undefined) return;
      const fewest = (best: Queued, next: Queued) =>
        this.#runningOf(next.turn.owner) < this.#runningOf(best.turn.owner) ? next : best;
      others.reduce(fewest, first).begin();
    }
  }

  #take(): Sandbox {
    if (this.#isClosed) throw new Interrupted('the service stops');
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      clearTimeout(idle.timer);
      if (idle.sandbox.ended === null) return idle.sandbox;
    }
    const sandbox: Sandbox = new Sandbox(this.#file, this.#options, (ending) => {
      this.#all.delete(sandbox);
      if (ending !== 'SIGKILL') this.#log.warn({ ending }, 'a sandbox ended, and with it the task in it');
    });
    this.#all.add(sandbox);
    return sandbox;
  }

  #release(sandbox: Sandbox): void {
    if (!sandbox.isFree || this.#isClosed) {
      sandbox.kill(new Interrupted('the task was given up'));
      return;
    }
    const timer = setTimeout(() => {
      this.#idle.splice(this.#idle.indexOf(idle), 1);
      sandbox.kill(new Interrupted('idle'));
    }, this.#options.idleMs);
    const idle: Idle = { sandbox, timer: timer.unref() };
    this.#idle.push(idle);
  }
}

export function runTask<Input, Question, Answer, Item>(
  sandboxes: Sandboxes | null,
  task: string,
  handler: TaskHandler<Input, Question, Answer, Item>,
  work: Work<Input, Question, Answer>,
): AsyncIterable<Item> {
  return sandboxes === null ? handler(work.input, work.ask) : sandboxes.run(task, work);
}
