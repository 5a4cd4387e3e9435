import { setTimeout as delay } from 'node:timers/promises';
import { inputError } from '../../../src/base/errors.ts';
import { serveTasks, type TaskHandler } from '../../../src/base/sandbox/sandbox.ts';

/**
 * Tasks that misbehave on purpose, as a parser of hostile bytes could. Tests import only the types
 * of these tasks.
 */

type Handler = TaskHandler<number, string, Buffer, unknown>;

export const tasks = {
  async *count(to) {
    for (let number = 1; number <= to; number++) yield number;
  },
  async *environment() {
    yield {
      pid: process.pid,
      variables: Object.keys(process.env).filter((name) => name !== 'NODE_CHANNEL_FD'),
    };
  },
  async *ask(times, ask) {
    for (let number = 0; number < times; number++) {
      const answers = await Promise.all([ask(`a${number}`), ask(`b${number}`)]);
      yield Buffer.concat(answers);
    }
  },
  /** Creates one array larger than the heap. In a thread, this would end the whole process. */
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
  /** Never ends, but lets other tasks run. */
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
  /** Sends SIGTERM to its own process, as an operator or the operating system would. */
  async *stop() {
    process.kill(process.pid, 'SIGTERM');
    await delay(2 ** 30);
    yield 0;
  },
} satisfies Record<string, Handler>;

serveTasks(tasks);
