import { oneLine } from '../delivery/one-line.ts';
import { type Post, RefusedError } from '../delivery/post.ts';
import { MAX_NOTIFICATION_ERROR_CHARS } from '../domain/limits.ts';
import { isMailAddress } from '../domain/mail-address.ts';
import { composeMessage } from './compose-message.ts';
import type { EventBody } from './render-event.ts';

/** What came of one try. `refused`: it will never be taken. */
export interface EmailAnswer {
  readonly error: string | null;
  readonly refused: boolean;
}

/** Sends the message about an event to one address. Never throws for what the mail server does. */
export async function sendEmail(post: Post, body: string, address: string): Promise<EmailAnswer> {
  if (!isMailAddress(address)) return { error: 'this is no address that mail is sent to', refused: true };
  try {
    await post.send(composeMessage(JSON.parse(body) as EventBody, address));
    return { error: null, refused: false };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const kept = oneLine(reason).slice(0, MAX_NOTIFICATION_ERROR_CHARS).toWellFormed();
    return { error: kept, refused: error instanceof RefusedError };
  }
}
