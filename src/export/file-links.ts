import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Export } from '../domain/export.ts';
import type { Database } from '../postgres/database.ts';
import { readSigningKey } from '../postgres/ledger/signing-keys.ts';

/** A file of an export and where to get it, for whoever has the link. */
export interface FileLink {
  readonly filename: string;
  readonly url: string;
  readonly bytes: number;
  readonly rows: number;
  readonly sha256: string;
}

const purpose = 'export-links';
const hourMs = 3_600_000;

export function linksExpireAt(hours: number, now = Date.now()): Date {
  return new Date(now + hours * hourMs);
}

/** None unless it is completed and its files are kept still. */
export async function fileLinks(
  db: Database,
  { jobId, environmentId, files }: Export,
  baseUrl: string,
  expireAt: Date,
): Promise<FileLink[]> {
  if (files.length === 0) return [];
  const key = await readSigningKey(db, purpose);
  const expires = Math.floor(expireAt.getTime() / 1000);
  return files.map(({ filename, bytes, rows, sha256 }) => {
    const signature = sign(key, { environmentId, jobId, filename, expires: String(expires) });
    const path = `/api/v1/analytics/exports/files/${jobId}/${filename}`;
    return {
      filename,
      url: `${baseUrl}${path}?expires=${expires}&signature=${signature}`,
      bytes,
      rows,
      sha256,
    };
  });
}

/** What a link says. */
export interface LinkParts {
  readonly environmentId: number;
  readonly jobId: string;
  readonly filename: string;
  /** Seconds since 1970, as it stands in the link. */
  readonly expires: string;
}

/** Whether we made this link, expired or not; takes as long for a signature that is nearly right as for any. */
export async function isOurLink(db: Database, parts: LinkParts, signature: string): Promise<boolean> {
  const expected = Buffer.from(sign(await readSigningKey(db, purpose), parts));
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** An array as JSON: no part can reach into the next. */
function sign(key: Buffer, { environmentId, jobId, filename, expires }: LinkParts): string {
  const text = JSON.stringify(['v1', environmentId, jobId, filename, expires]);
  return createHmac('sha256', key).update(text).digest('base64url');
}
