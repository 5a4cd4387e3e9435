import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { findSessionActor } from '../access/console-session.ts';
import { readSigningKey } from '../access/environment-store.ts';
import { digestKey, isLiveKey } from '../access/key-store.ts';
import { staticKeyId } from '../access/verify-key.ts';
import type { Config } from '../base/config.ts';
import { InputError, inputError } from '../base/errors.ts';
import type { Actor } from '../domain/act.ts';
import type { Caller } from '../domain/caller.ts';
import { type ExportFile, exportFormatFacts, isExportFormat } from '../domain/export.ts';
import { type FileRef, MissingFileError } from '../files/file-store.ts';
import type { Database } from '../postgres/database.ts';
import type { ExportContext } from './context.ts';
import { type Export, findExportFile, readExports } from './store.ts';

/** Lifetime of links. To get new links, callers read the job again. */
const LINK_TTL_MS = 48 * 60 * 60 * 1000;

export interface FileLink {
  readonly filename: string;
  readonly url: string;
  readonly bytes: number;
  readonly rows: number;
  readonly sha256: string;
}

/**
 * Links to the files of an export. `manifest` is `null` before the files exist and after they have
 * been removed.
 */
export interface ExportLinks {
  readonly files: readonly FileLink[];
  readonly manifest: FileLink | null;
}

const purpose = 'export-links';

export function linksExpireAt(): Date {
  return new Date(Date.now() + LINK_TTL_MS);
}

/** The key or session to which a link is bound. The link is valid only as long as its holder. */
export interface LinkHolder {
  readonly kind: 'key' | 'session';
  readonly id: string;
}

export function linkHolder({ keyId, session }: Caller): LinkHolder {
  const hasKey = session === undefined || session.holder === 'key' || session.holder === 'static_key';
  return hasKey ? { kind: 'key', id: keyId } : { kind: 'session', id: session.sessionId };
}

/**
 * Links lead to the file store if it can sign them. Otherwise, they lead to `baseUrl`, and sluice
 * signs and binds them to `holder`. If `holder` is `null`, as in messages, the links work for
 * everybody.
 */
export async function fileLinks(
  { db, files: store, config }: Pick<ExportContext, 'db' | 'files'> & KeyContext,
  { jobId, environmentId, files }: Export,
  baseUrl: string,
  expireAt: Date,
  holder: LinkHolder | null = null,
): Promise<ExportLinks> {
  if (files.length === 0) return { files: [], manifest: null };
  const { presign } = store;
  const links =
    presign === undefined
      ? await ourLinks(db, { jobId, environmentId, holder, config }, baseUrl, expireAt)
      : ({ filename, ref }: Export['files'][number]) =>
          presign(ref as FileRef, { filename, contentType: contentType(filename), expireAt });
  const link = async (file: ExportFile): Promise<FileLink> => {
    const { filename, bytes, rows, sha256 } = file;
    return { filename, url: await links(file), bytes, rows, sha256 };
  };
  const manifest = files.find(({ dataset }) => dataset === 'manifest');
  return {
    files: await Promise.all(files.filter((file) => file !== manifest).map(link)),
    manifest: manifest === undefined ? null : await link(manifest),
  };
}

async function ourLinks(
  db: Database,
  job: Omit<LinkParts, 'filename' | 'expires'>,
  baseUrl: string,
  expireAt: Date,
): Promise<(file: { readonly filename: string }) => string> {
  const key = await readSigningKey(db, purpose);
  const expires = String(Math.floor(expireAt.getTime() / 1000));
  return ({ filename }) => {
    const query = new URLSearchParams({ expires });
    if (job.holder !== null) query.set(job.holder.kind, job.holder.id);
    query.set('signature', sign(key, { ...job, filename, expires }));
    return `${baseUrl}/api/v1/analytics/exports/files/${job.jobId}/${filename}?${query}`;
  };
}

/** Returns links that work for everybody until LINK_TTL_MS has passed. */
export async function linkFilesForMail(
  context: Pick<ExportContext, 'db' | 'files' | 'baseUrl'> & KeyContext,
  environmentId: number,
  jobId: string,
): Promise<ExportLinks & { readonly expireAt: Date }> {
  const expireAt = linksExpireAt();
  const [job] = await readExports(context.db, environmentId, [jobId]);
  if (job === undefined) return { files: [], manifest: null, expireAt };
  return { ...(await fileLinks(context, job, context.baseUrl, expireAt)), expireAt };
}

/**
 * A signature includes API_KEY, ADMIN_KEY or neither. If API_KEY changes, links that were requested
 * with API_KEY become invalid. If ADMIN_KEY changes, links of console sessions become invalid.
 */
interface KeyContext {
  readonly config: Pick<Config, 'apiKey' | 'adminKey'>;
}

interface LinkParts extends KeyContext, Omit<LinkRequest, 'signature'> {
  readonly environmentId: number;
}

/** Plain concatenation would be ambiguous: different parts could give the same text. */
function sign(key: Buffer, parts: LinkParts): string {
  const { environmentId, jobId, filename, expires, holder, config } = parts;
  const file = ['v1', environmentId, jobId, filename, expires];
  const text = JSON.stringify(holder === null ? file : [...file, ...signedHolder(holder, config)]);
  return createHmac('sha256', key).update(text).digest('base64url');
}

function signedHolder({ kind, id }: LinkHolder, { apiKey, adminKey }: KeyContext['config']): string[] {
  const digestOf = (key: string | null) => digestKey(key ?? '').toString('hex');
  if (kind === 'session') return [kind, id, digestOf(adminKey)];
  return id === staticKeyId ? [id, digestOf(apiKey)] : [id];
}

export interface LinkRequest {
  readonly jobId: string;
  readonly filename: string;
  /** The time at which the link expires: seconds since 1970, as in the link. */
  readonly expires: string;
  /** Holder to which the link is bound. `null` if the link was sent in a message. */
  readonly holder: LinkHolder | null;
  readonly signature: string;
}

export type LinkedFile = ExportFile & {
  readonly ref: FileRef;
  readonly environmentId: number;
  /** The user or key that requested the link. */
  readonly actor: Actor;
};

/**
 * Finds the file to which a link leads.
 * @throws InputError `not_found` for a link not signed by sluice, `link_expired` or `job_expired`
 * for a link that is no longer valid
 */
export async function findLinkedFile(
  { db, config }: Pick<ExportContext, 'db'> & KeyContext,
  { jobId, filename, expires, holder, signature }: LinkRequest,
): Promise<LinkedFile> {
  const row = await findExportFile(db, jobId, filename);
  // A faster response for an unknown job would reveal that the job does not exist.
  const parts = { environmentId: row?.environmentId ?? 0, jobId, filename, expires, holder, config };
  const expected = Buffer.from(sign(await readSigningKey(db, purpose), parts));
  const actual = Buffer.from(signature);
  const isOurs = actual.length === expected.length && timingSafeEqual(actual, expected);
  if (!isOurs || row === null) throw new InputError(noSuchLink);
  if (Number(expires) * 1000 <= Date.now()) {
    throw inputError('link_expired', 'The link has expired; ask for the job to get a new one', 'expires');
  }
  const actor = await findActor(db, holder);
  if (actor === null) {
    const message = `The ${holder?.kind} that the link was given to is no longer valid`;
    throw inputError('link_expired', message, holder?.kind);
  }
  if (row.filesExpired || row.file === null) throw noLongerKept(jobId);
  return { ...row.file, environmentId: row.environmentId, actor };
}

/** Returns the user of the link, or `null` if the key has been revoked or the session has ended. */
async function findActor(db: Database, holder: LinkHolder | null): Promise<Actor | null> {
  if (holder === null) return { kind: 'link', name: null };
  const { kind, id } = holder;
  if (kind === 'session') return findSessionActor(db, id);
  const isLive = id === staticKeyId || (await isLiveKey(db, id));
  return isLive ? { kind: 'api_key', name: id } : null;
}

/**
 * Opens a range of the file. The range [start, end) must not be empty.
 * @throws InputError `job_expired` if the file no longer exists
 */
export async function openLinkedFile(
  { files }: Pick<ExportContext, 'files'>,
  file: LinkedFile,
  range: { readonly start: number; readonly end: number },
): Promise<Readable> {
  const stream = files.open(file.ref, range);
  try {
    // A missing file fails here, before the response has begun.
    await once(stream, 'readable');
  } catch (error) {
    if (error instanceof MissingFileError) throw noLongerKept(file.filename);
    throw error;
  }
  return stream;
}

export function recordDownload(
  { db, acts }: Pick<ExportContext, 'db' | 'acts'>,
  environmentId: number,
  jobId: string,
  filename: string,
): Promise<void> {
  const thing = `${jobId}/${filename}`;
  return acts.record(db, { action: 'file.downloaded', environmentId, thing, isFrequent: true });
}

export const noSuchLink = {
  code: 'not_found',
  message: 'There is no such file, or the link to it is wrong',
  details: '',
} as const;

function noLongerKept(details: string): Error {
  return inputError('job_expired', 'The files of this export are no longer kept', details);
}

export function contentType(filename: string): string {
  const extension = filename.split('.').at(-1) ?? '';
  if (extension === 'gz') return 'application/gzip';
  if (!isExportFormat(extension)) return 'application/json';
  const { mediaType } = exportFormatFacts[extension];
  return mediaType.startsWith('text/') ? `${mediaType}; charset=utf-8` : mediaType;
}
