import type { Logger } from 'pino';
import { jobFields } from '../domain/job-fields.ts';
import { fileLinks, linksExpireAt } from '../export/file-links.ts';
import { requireExport } from '../export/inspect-exports.ts';
import type { FileStore } from '../files/file-store.ts';
import type { Database } from '../postgres/database.ts';
import {
  claimNotice,
  completeNotice,
  markTold,
  type NoticeClaim,
  postponeNotice,
} from '../postgres/ledger/export-notices.ts';
import { pauseAfter } from './back-off.ts';
import { composeNotice, type Notice } from './compose-notice.ts';
import { DeferredError, type Post, RefusedError } from './post.ts';

export interface DeliveryContext {
  readonly db: Database;
  readonly files: FileStore;
  readonly log: Logger;
  readonly post: Post;
  /** What links begin with. */
  readonly baseUrl: string;
  readonly linkTtlHours: number;
}

/**
 * Tells everybody who asked for it of the end of an export, in one message each, and notes each at once. If the mail
 * server cannot be had, or puts somebody off, the rest is tried again later. May be called twice or late: then there is nothing to tell.
 */
export async function deliverNotice(context: DeliveryContext, exportId: number): Promise<void> {
  const claim = await claimNotice(context.db, exportId);
  if (claim === null) return;
  try {
    const notice = await readNotice(context, claim);
    await tellAll(context, claim, notice);
  } catch (error) {
    await tryLater(context, claim, error);
    return;
  }
  await completeNotice(context.db, claim);
}

async function readNotice(context: DeliveryContext, claim: NoticeClaim): Promise<Notice> {
  const ended = await requireExport(context, claim.environmentId, claim.jobId);
  const expireAt = linksExpireAt(context.files, context.linkTtlHours);
  return {
    export: ended,
    environmentName: claim.environmentName,
    links: await fileLinks(context, ended, context.baseUrl, expireAt),
    linksExpireAt: expireAt,
  };
}

/** Nobody waits for an address that the server puts off. Throws if somebody is still to be told. */
async function tellAll(context: DeliveryContext, claim: NoticeClaim, notice: Notice): Promise<void> {
  let deferred: DeferredError | null = null;
  for (const address of claim.left) {
    try {
      await tell(context, claim, notice, address);
    } catch (error) {
      if (!(error instanceof DeferredError)) throw error;
      deferred = error;
    }
  }
  if (deferred !== null) throw deferred;
}

/** Throws if it may work later. */
async function tell(
  { db, log, post }: DeliveryContext,
  claim: NoticeClaim,
  notice: Notice,
  address: string,
): Promise<void> {
  let refusal: string | null = null;
  try {
    await post.send(composeNotice(notice, address));
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    refusal = `${address}: ${error.message}`;
    log.warn({ ...jobFields(claim), reason: error.message }, 'a message about an export was refused');
  }
  await markTold(db, claim, address, refusal);
}

async function tryLater({ db, log }: DeliveryContext, claim: NoticeClaim, error: unknown): Promise<void> {
  const message = error instanceof Error ? error.message : String(error);
  const pauseMs = pauseAfter(claim.attempt);
  const fields = { ...jobFields(claim), attempt: claim.attempt, reason: message };
  if (pauseMs === null) log.error(fields, 'a message about an export was given up');
  else log.warn(fields, 'a message about an export could not be sent; it will be tried again');
  await postponeNotice(db, claim, pauseMs, message);
}
