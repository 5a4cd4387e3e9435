import { createHash } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../../base/config.ts';
import { FinalFailure } from '../../base/errors.ts';
import { uuidv7 } from '../../base/uuid.ts';
import { capitalise, plural, summaries } from '../../base/wording.ts';
import {
  clip,
  endOf,
  isRun,
  type JobData,
  linksOf,
  nameOf,
  oneLine,
  outcomeOf,
  type RefusedFile,
  type RunData,
  refusedFileOf,
  shownJobs,
  textOfRefusal,
} from './brief.ts';
import type { EventBody } from './record.ts';

/*
 * Sends mail. Without SMTP_URL, messages are written to files for developers. No other file uses
 * nodemailer.
 */

export interface Message {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** The id is equal for every attempt, so that a mail system can drop a duplicate. */
  readonly messageId: string;
}

export interface MailTransport {
  /** @throws FinalFailure if the server will never accept the message, otherwise another error */
  send(message: Message): Promise<void>;
  close(): void;
}

function messageId(eventId: string, address: string): string {
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

function openTransport(
  open: () => Promise<Sender>,
  onSent: (message: unknown) => Promise<void>,
): MailTransport {
  let opening: Promise<Sender> | undefined;
  return {
    async send({ to, ...message }) {
      opening ??= open();
      const sender = await opening;
      // nodemailer could split a string into several addresses.
      const { message: source } = await sender.sendMail({ ...message, to: { name: '', address: to } });
      await onSent(source);
    },
    // If the sender could not be opened, `send` has already failed with the error.
    close: () =>
      void opening?.then(
        (opened) => opened.close(),
        () => undefined,
      ),
  };
}

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

/** Milliseconds. A server that does not respond must not block the worker. */
const timeouts = {
  connectionTimeout: 5_000,
  greetingTimeout: 5_000,
  dnsTimeout: 5_000,
  socketTimeout: 15_000,
};

/** Loaded on demand, because most processes send no message. */
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

/** The error contains the settings and the password, so only the server's response is kept. */
function translate(error: unknown): Error {
  const { code, command, responseCode, response, message } = error as {
    code?: string;
    command?: string;
    responseCode?: number;
    response?: string;
    message?: string;
  };
  const answer = (response ?? message ?? 'the mail server failed').slice(0, 500);
  // The error is final only if it concerns the message or its recipient. A login or a sender can be
  // corrected in the settings.
  const isOfMessage = code === 'EMESSAGE' || (code === 'EENVELOPE' && command !== 'MAIL FROM');
  const isFinal = isOfMessage && responseCode !== undefined && responseCode >= 500;
  return isFinal ? new FinalFailure('mail_refused', answer) : new Error(answer);
}

function openOutbox(folder: string, from: string, log: Logger): MailTransport {
  const open = async () => {
    const { createTransport } = await loadNodemailer();
    return createTransport({ streamTransport: true, buffer: true, newline: 'windows' }, { from });
  };
  return openTransport(open, async (message) => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    // The names sort in chronological order.
    const file = join(folder, `${uuidv7()}.eml`);
    try {
      await writeFile(`${file}.part`, message as Buffer, { mode: 0o600, flag: 'wx' });
      await rename(`${file}.part`, file);
    } catch (error) {
      // Removes the partial file. Without this, every attempt on a full disk would leave one.
      await rm(`${file}.part`, { force: true });
      throw error;
    }
    log.info({ file }, 'SMTP_URL is not set: a message was written to a file');
  });
}

/*
 * Each fact is limited to one line, because callers choose the names in it. Among the headers, only
 * the subject contains such names.
 */

interface LinkedFile {
  readonly filename: string;
  readonly url: string;
  readonly bytes: number;
  readonly rows: number;
}

export interface LinkedFiles {
  readonly files: readonly LinkedFile[];
  readonly manifest: Omit<LinkedFile, 'rows'> | null;
  readonly expireAt: Date;
}

const shownCodes = 10;
const longestLine = 500;
const count = new Intl.NumberFormat('en-US');

const cut = (text: string) => clip(text, longestLine);

/** `linked`: links to the exported files, for a recipient that the export request names. */
export function composeMail(
  event: EventBody,
  address: string,
  linked: LinkedFiles = { files: [], manifest: null, expireAt: new Date(0) },
): Message {
  const subject = cut(`[${event.environment.name}] ${titleOf(event)}`);
  const facts = describe(event).map(cut);
  const links = linksOf(event).map(cut);
  return {
    to: address,
    subject,
    text: renderText(facts, links, linked),
    messageId: messageId(event.id, address),
  };
}

/** The title names the job, its outcome and the reason, because a phone may show only the title. */
function titleOf(event: EventBody): string {
  if (event.type === 'ping') return 'Test of a notification';
  const file = refusedFileOf(event);
  if (file !== null) return `${file.file} was not loaded: ${file.reasons[0]?.message}`;
  const outcome = outcomeOf(event);
  const job = event.data as JobData;
  const name = nameOf(event);
  const refused = job.rejects?.count ?? 0;
  const reason = job.failure?.message ?? (refused > 0 ? `${plural(refused, 'record')} refused` : null);
  const [ended = ''] = outcome.split('_');
  return `${name} ${reason === null ? outcome.replaceAll('_', ' ') : `${ended}: ${reason}`}`;
}

function describe(event: EventBody): string[] {
  const environment = `Environment: ${event.environment.name}`;
  if (event.type === 'ping') return [environment, 'Messages about jobs will come to this address.'];
  const file = refusedFileOf(event);
  if (file !== null) return [environment, ...describeFile(file)];
  const status = `Status: ${outcomeOf(event).replaceAll('_', ' ')}`;
  const facts = isRun(event) ? describeRun(event.data) : describeJob(event.data as JobData);
  return [environment, status, ...facts, ...describeCounts(event.data as JobData)];
}

function describeFile({ file, size, sources = [], reasons }: RefusedFile): string[] {
  return [
    `File: ${file}`,
    `Bytes: ${count.format(sources[0]?.bytes ?? size ?? 0)}`,
    ...reasons.map((reason) => `Reason: ${textOfRefusal(reason)} [${reason.error_code}]`),
    'The folder failed of the inbox has the file and its receipt.',
  ];
}

function describeJob(data: JobData): string[] {
  const facts = [`Job: ${data.job_id}`, `Type: ${data.type}`, `File: ${data.filename}`];
  if (data.dry_run === true) facts.push('Dry run: nothing was written.');
  facts.push(`Accepted: ${data.start_time}`, `Ended: ${data.end_time}`);
  if (data.failure != null) facts.push(`Reason: ${data.failure.message} [${data.failure.error_code}]`);
  for (const { message, details } of data.warnings ?? []) facts.push(`Warning: ${message} (${details})`);
  for (const [name, summary] of summaries(data)) facts.push(`${capitalise(name)}: ${summary}`);
  if (data.type !== 'export') return facts;
  return [
    ...facts,
    `Rows: ${count.format(data.total_rows ?? 0)}`,
    `Bytes: ${count.format(data.file_size ?? 0)}`,
  ];
}

function describeRun(data: RunData): string[] {
  const { endedAt, failure } = endOf(data);
  const { counts } = data;
  const facts = [`Schedule: ${data.schedule}`, `Due: ${data.due_at}`, `Ended: ${endedAt}`];
  if (failure !== null) facts.push(`Reason: ${failure.message} [${failure.error_code}]`);
  if (data.range_to != null) facts.push(`Range: ${data.range_from ?? 'the beginning'} to ${data.range_to}`);
  if (data.delivered_to != null) facts.push(`Copied to: ${data.delivered_to}`);
  if (counts != null && 'written' in counts) facts.push(`Rows: ${count.format(counts.written)}`);
  const jobs = data.item_count ?? 0;
  return jobs > shownJobs ? [...facts, `Items: ${jobs}, of which the first are below`] : facts;
}

function describeCounts(data: JobData): string[] {
  if (data.counts == null || !('read' in data.counts)) return [];
  const counts = Object.entries(data.counts);
  const kinds = Object.entries(data.counts_by_kind ?? {}).filter(([, { read = 0 }]) => read > 0);
  const reasons = Object.entries(data.rejects?.by_code ?? {}).slice(0, shownCodes);
  return [
    ...counts.map(([name, rows]) => `Records ${name}: ${count.format(rows)}`),
    ...kinds.map(([kind, { read = 0, inserted = 0, rejected = 0 }]) => {
      const numbers = [read, inserted, rejected].map((rows) => count.format(rows));
      return `Of kind ${kind}: ${numbers[0]} read, ${numbers[1]} inserted, ${numbers[2]} rejected`;
    }),
    ...reasons.map(([code, rows]) => `Rejected as ${code}: ${count.format(rows)}`),
  ];
}

function renderText(facts: readonly string[], links: readonly string[], linked: LinkedFiles): string {
  const files = listFiles(linked);
  const fileLines = files.flatMap(({ name, size, url }) => ['', `${name} (${size})`, url]);
  const expiry = files.length === 0 ? [] : ['', expiresAt(linked.expireAt)];
  return `${[...facts, '', ...links, ...fileLines, ...expiry].join('\n').trimEnd()}\n`;
}

interface ListedFile {
  readonly name: string;
  readonly size: string;
  readonly url: string;
}

function listFiles({ files, manifest }: LinkedFiles): ListedFile[] {
  const list = ({ filename, url, bytes }: Omit<LinkedFile, 'rows'>, rows: string): ListedFile => ({
    name: oneLine(filename),
    size: `${rows}${count.format(bytes)} bytes`,
    url: oneLine(url),
  });
  const listed = files.map((file) =>
    list(file, `${count.format(file.rows)} ${file.rows === 1 ? 'row' : 'rows'}, `),
  );
  return manifest === null ? listed : [...listed, list(manifest, '')];
}

function expiresAt(at: Date): string {
  return `The links are good until ${at.toISOString()}. Asking for the job again gives new ones.`;
}
