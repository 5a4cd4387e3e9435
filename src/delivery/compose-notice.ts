import type { Export } from '../domain/export.ts';
import { escapeHtml } from './escape-html.ts';
import { type Message, messageId } from './message.ts';
import { oneLine } from './one-line.ts';

export interface NoticeLink {
  readonly filename: string;
  readonly url: string;
  readonly bytes: number;
  readonly rows: number;
}

/** What is told of an export that has ended. */
export interface Notice {
  readonly export: Export;
  readonly environmentName: string;
  readonly links: readonly NoticeLink[];
  readonly linksExpireAt: Date;
}

/** The message for one address. Names come from our own tables or are generated, and are still kept to one line. */
export function composeNotice(notice: Notice, address: string): Message {
  const { jobId, status } = notice.export;
  const subject = oneLine(`[${notice.environmentName}] Export ${status}`);
  const lines = describe(notice);
  return {
    to: address,
    subject,
    text: renderText(notice, lines),
    html: renderHtml(notice, subject, lines),
    messageId: messageId(`export-${jobId}`, address),
  };
}

function describe({ export: ended, environmentName }: Notice): string[] {
  const lines = [`Environment: ${environmentName}`, `Job: ${ended.jobId}`, `Status: ${ended.status}`];
  lines.push(`Asked for: ${ended.requestedAt.toISOString()}`);
  if (ended.endedAt !== null) lines.push(`Ended: ${ended.endedAt.toISOString()}`);
  if (ended.failure !== null) lines.push(`Reason: ${ended.failure.message} [${ended.failure.code}]`);
  if (ended.status === 'completed') {
    lines.push(`Rows: ${count.format(ended.rowsWritten)}`, `Bytes: ${count.format(ended.bytesWritten)}`);
  }
  return lines.map(oneLine);
}

function renderText({ links, linksExpireAt }: Notice, lines: readonly string[]): string {
  const files = links.map(
    ({ filename, url, rows, bytes }) => `${filename} (${sizes(rows, bytes)})\n${url}\n`,
  );
  const expiry = links.length === 0 ? [] : [expires(linksExpireAt)];
  return `${[...lines, '', ...files, ...expiry].join('\n').trimEnd()}\n`;
}

function renderHtml({ links, linksExpireAt }: Notice, title: string, lines: readonly string[]): string {
  const rows = lines.map((line) => `<p>${escapeHtml(line)}</p>`);
  const files = links.map(
    ({ filename, url, rows: found, bytes }) =>
      `<li><a href="${escapeHtml(url)}">${escapeHtml(filename)}</a> (${sizes(found, bytes)})</li>`,
  );
  const list = links.length === 0 ? [] : [`<ul>${files.join('\n')}</ul>`, `<p>${expires(linksExpireAt)}</p>`];
  const body = [...rows, ...list].join('\n');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head>
<body>
${body}
</body></html>
`;
}

const count = new Intl.NumberFormat('en-US');

function sizes(rows: number, bytes: number): string {
  return `${count.format(rows)} rows, ${count.format(bytes)} bytes`;
}

function expires(at: Date): string {
  return `The links are good until ${at.toISOString()}. Asking for the job again gives new ones.`;
}
