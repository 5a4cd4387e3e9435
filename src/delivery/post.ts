import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { Message } from './message.ts';
import { createOutbox } from './outbox.ts';
import { createSmtpPost } from './smtp-post.ts';

/** Sends messages; two implementations: a mail server, and a folder. */
export interface Post {
  /**
   * Throws `RefusedError` if this message will never be taken, `DeferredError` if it may be, later; anything else is about
   * the server, and so about every message.
   */
  send(message: Message): Promise<void>;
  close(): void;
}

/** The server says no, for good: no such address, a message that it does not want. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

/** The server says not now, and of this message only: others it may take. */
export class DeferredError extends Error {
  override readonly name = 'DeferredError';
}

export function createPost(config: Config, log: Logger): Post {
  const { smtpUrl, mailFrom, outboxDir } = config;
  return smtpUrl === null ? createOutbox(outboxDir, mailFrom, log) : createSmtpPost(smtpUrl, mailFrom);
}
