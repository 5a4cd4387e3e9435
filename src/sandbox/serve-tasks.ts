import { InputError } from '../domain/errors.ts';
import type { FromSandbox, TaskHandler, TaskShape, ToSandbox } from './sandbox.ts';

/** Runs the tasks that the parent begins in a sandbox, one at a time, until the parent is gone. */
export function serveTasks<Tasks extends { readonly [Name in keyof Tasks]: TaskShape }>(
  handlers: {
    readonly [Name in keyof Tasks]: TaskHandler<Tasks[Name]>;
  },
): void {
  const byName = new Map<string, TaskHandler<TaskShape>>(Object.entries(handlers));
  process.once('disconnect', () => process.exit());
  const answers = new Map<number, (answer: unknown) => void>();
  let asked = 0;
  let items: AsyncIterator<unknown> | undefined;
  const ask = (question: unknown): Promise<unknown> =>
    new Promise((resolve) => {
      answers.set(++asked, resolve);
      send({ kind: 'ask', question: asked, asked: question });
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
