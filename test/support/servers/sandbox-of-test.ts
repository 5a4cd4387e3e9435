import { setTimeout as delay } from 'node:timers/promises';
import { inputError } from '../../../src/base/errors.ts';
import { serveTasks, type TaskHandler } from '../../../src/base/sandbox/sandbox.ts';

/**
 * Tasks that do the worst that hostile bytes can make a parser do. Tests import only their types.
 */

type Handler = TaskHandler<number, string, Buffer, unknown>;

export const tasks = {
  /** Counts up to its input. */
  async *count(to) {
    for (let number = 1; number <= to; number++) yield number;
  },
  async *environment() {
    yield {
      pid: process.pid,
      variables: Object.keys(process.env).filter((name) => name !== 'NODE_CHANNEL_FD'),
    };
  },
  /** Asks for twice as many answers as it has items. */
  async *ask(times, ask) {
    for (let number = 0; number < times; number++) {
      const answers = await Promise.all([ask(`a${number}`), ask(`b${number}`)]);
      yield Buffer.concat(answers);
    }
  },
  /** Makes one array larger than the heap, which in a thread would end the whole process. */
  async *largeArray() {
    yield new Array(60_000_000).fill({}).length;
  },
  async *manyObjects() {
    const objects: object[] = [];
    yield* [];
    while (true) objects.push({});
  },
  async *loop(items) {
    for (let number = 1; number <= items; number++) yield number;
    while (true);
  },
  /** Never ends, and lets other tasks run. */
  async *idle() {
    await delay(2 ** 30);
    yield 0;
  },
  async *refuse() {
    yield 1;
    throw inputError('unsupported_format', 'No such thing', 'line 7');
  },
  async *fail() {
    yield* [];
    throw new TypeError('x is not a function');
  },
  async *exit() {
    yield* [];
    process.exit(3);
  },
  /** Ends as if a person stopped the service, or its machine. */
  async *stop() {
    process.kill(process.pid, 'SIGTERM');
    await delay(2 ** 30);
    yield 0;
  },
} satisfies Record<string, Handler>;

serveTasks(tasks);
