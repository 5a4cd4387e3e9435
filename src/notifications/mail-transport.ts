import { createHash } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { uuidv7 } from 'uuidv7';
import type { Config } from '../config.ts';

/*
 * Mail leaves through the server of SMTP_URL or, without one, into a folder that a developer looks at. Nothing else of
 * the program knows nodemailer.
 */

/** A message to one address. */
export interface Message {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The same for every attempt, so that a mail system can drop a duplicate. */
  readonly messageId: string;
}

export interface MailTransport {
  /** Throws `MailRefused` if the server will never take this message; any other error may pass. */
  send(message: Message): Promise<void>;
  close(): void;
}

/** The server refuses for good: no such address, or a message that it does not want. */
export class MailRefused extends Error {
  override readonly name = 'MailRefused';
}

/** The Message-ID of an event for an address. */
export function messageId(eventId: string, address: string): string {
  return `<event-${eventId}-${createHash('sha256').update(address).digest('hex').slice(0, 16)}@sluice>`;
}

export function openMailTransport(
  { smtpUrl, mailFrom, outboxDir }: Pick<Config, 'smtpUrl' | 'mailFrom' | 'outboxDir'>,
  log: Logger,
): MailTransport {
  return smtpUrl === null ? openOutbox(outboxDir, mailFrom, log) : openSmtp(smtpUrl, mailFrom);
}

interface Sender {
  sendMail(message: object): Promise<{ readonly message?: unknown }>;
  close(): void;
}

/** Opens the sender with the first message, and sends every message through it. */
function openTransport(
  open: () => Promise<Sender>,
  sent: (message: unknown) => Promise<void>,
): MailTransport {
  let opening: Promise<Sender> | undefined;
  return {
    async send({ to, ...message }) {
      opening ??= open();
      const sender = await opening;
      // An object, since nodemailer would search a string for several addresses.
      const { message: source } = await sender.sendMail({ ...message, to: { name: '', address: to } });
      await sent(source);
    },
    // A sender that could not be opened has failed its message.
    close: () =>
      void opening?.then(
        (opened) => opened.close(),
        () => undefined,
      ),
  };
}

/** Sends through a mail server, on one connection per message: there are few. */
function openSmtp(smtpUrl: string, from: string): MailTransport {
  const { send, close } = openTransport(
    () => connectTo(smtpUrl, from),
    async () => undefined,
  );
  return {
    close,
    send: (message) =>
      send(message).catch((error: unknown) => {
        throw translate(error);
      }),
  };
}

/** Connects, greets and logs in, and sends nothing. Throws what the server has against it. */
export async function checkSmtpServer(smtpUrl: string): Promise<void> {
  const transport = await connectTo(smtpUrl);
  try {
    await transport.verify();
  } catch (error) {
    throw translate(error);
  } finally {
    transport.close();
  }
}

/** A server that does not answer must not hold up the worker that asks it. */
const timeouts = {
  connectionTimeout: 5_000,
  greetingTimeout: 5_000,
  dnsTimeout: 5_000,
  socketTimeout: 15_000,
};

/** Loaded when a message is to be sent: most processes send none, and all would pay for it at their start. */
const loadNodemailer = () => import('nodemailer');

async function connectTo(smtpUrl: string, from?: string) {
  const { createTransport } = await loadNodemailer();
  const options = {
    url: smtpUrl,
    ...timeouts,
    logger: false,
    debug: false,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  return createTransport(options, from === undefined ? {} : { from });
}

/** Keeps only the server's answer: the error also carries the settings, and so the password. */
function translate(error: unknown): Error {
  const { code, command, responseCode, response, message } = error as {
    code?: string;
    command?: string;
    responseCode?: number;
    response?: string;
    message?: string;
  };
  const answer = (response ?? message ?? 'the mail server failed').slice(0, 500);
  // An answer to the login or the sender is about our settings, which somebody will correct; 421 is about the server.
  const isOfMessage = code === 'EMESSAGE' || (code === 'EENVELOPE' && command !== 'MAIL FROM');
  const isFinal = isOfMessage && responseCode !== undefined && responseCode >= 500;
  return isFinal ? new MailRefused(answer) : new Error(answer);
}

/** Without a mail server each message becomes a file that mail programs open; the log has its path. */
function openOutbox(folder: string, from: string, log: Logger): MailTransport {
  const open = async () => {
    const { createTransport } = await loadNodemailer();
    return createTransport({ streamTransport: true, buffer: true, newline: 'windows' }, { from });
  };
  return openTransport(open, async (message) => {
    await mkdir(folder, { recursive: true });
    // The time comes first in the name, so that a listing shows the messages in order.
    const file = join(folder, `${uuidv7()}.eml`);
    try {
      await writeFile(`${file}.part`, message as Buffer, { mode: 0o640, flag: 'wx' });
      await rename(`${file}.part`, file);
    } catch (error) {
      // Otherwise every attempt would leave a piece on a full disk.
      await rm(`${file}.part`, { force: true });
      throw error;
    }
    log.info({ file }, 'SMTP_URL is not set: a message was written to a file');
  });
}
