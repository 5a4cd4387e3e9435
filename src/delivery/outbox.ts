import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createTransport } from 'nodemailer';
import type { Logger } from 'pino';
import { uuidv7 } from 'uuidv7';
import type { Post } from './post.ts';

/** Where there is no mail server: each message becomes a file that mail programs open, and a line in the log says where. */
export function createOutbox(folder: string, from: string, log: Logger): Post {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: 'windows' }, { from });
  return {
    async send({ to, subject, text, html, messageId }) {
      const { message } = await transport.sendMail({
        to: { name: '', address: to },
        subject,
        text,
        html,
        messageId,
      });
      await mkdir(folder, { recursive: true });
      // The time comes first in the name, so that a listing shows them in order.
      const file = join(folder, `${uuidv7()}.eml`);
      try {
        await writeFile(`${file}.part`, message as Buffer, { mode: 0o640, flag: 'wx' });
        await rename(`${file}.part`, file);
      } catch (error) {
        // A disk that is full would have a piece more at every try.
        await rm(`${file}.part`, { force: true });
        throw error;
      }
      log.info({ file }, 'SMTP_URL is not set: a message was written to a file');
    },
    close: () => transport.close(),
  };
}
