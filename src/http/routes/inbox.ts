import { type Inbox, inboxRecord, takenAgain } from '../../api/inbox.ts';
import { TransientError } from '../../domain/errors.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, READ_TIMEOUT_MS } from '../../domain/limits.ts';
import { type InboxLook, inspectInbox, lookAt } from '../../sources/inbox/inspect-inbox.ts';
import { takeInAgain } from '../../sources/inbox/take-in.ts';
import { type Answer, createProbe, type ProbeOptions } from '../../telemetry/health.ts';
import { limitParameter, pageBytes } from '../page.ts';
import { idParameter } from '../parameters.ts';
import { callerEnvironment } from '../plugins/auth.ts';
import { listQuery } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';

const nobodyWatches: Inbox = {
  is_watched: false,
  waiting: 0,
  files: [],
  taken: [],
  ignored: [],
  held: [],
  recent: [],
};

/**
 * A look costs a call for each file, on the few threads that all files need: at 100 000 files it takes seconds. So there is one look a
 * second at most, and looks take a tenth of the time.
 */
const looking: ProbeOptions = {
  deadlineMs: READ_TIMEOUT_MS,
  keepMs: (tookMs, failed) => (failed ? 0 : Math.max(1_000, 9 * tookMs)),
};

/** Looks at a folder once for all who ask meanwhile or soon after. */
function lookTogether(): (path: string) => Promise<InboxLook> {
  const probes = new Map<string, () => Promise<Answer<InboxLook>>>();
  return async (path) => {
    const probe = probes.get(path) ?? createProbe(() => lookAt(path), looking);
    probes.set(path, probe);
    const answer = await probe();
    if ('value' in answer) return answer.value;
    throw new TransientError('the folder cannot be looked at', { cause: answer.error });
  };
}

type Found = NonNullable<Awaited<ReturnType<typeof inspectInbox>>>;

function render(status: Found['environments'][number], recent: Found['recent']) {
  return {
    is_watched: true,
    waiting: status.waiting,
    files: status.files.map(({ name, size, modifiedAt }) => ({
      ...{ name, size, modified_at: modifiedAt.toISOString() },
    })),
    taken: status.taken.map((file) => ({
      file_id: file.fileId,
      name: file.folder === '' ? file.name : `${file.folder}/${file.name}`,
      size: Number(file.size),
      state: file.state === 'concluded' ? ('loading' as const) : file.state,
      claimed_at: file.claimedAt.toISOString(),
      job_id: file.jobId,
    })),
    ignored: status.ignored.map(({ name, why }) => ({ name, why })),
    held: status.held,
    recent: recent.map((file) => ({
      file_id: file.fileId,
      name: file.name,
      size: file.size,
      outcome: file.outcome,
      path: file.path,
      job_id: file.jobId,
      is_duplicate: file.isDuplicate,
      rejected: file.rejected,
      reasons: file.reasons,
      concluded_at: file.concludedAt.toISOString(),
    })),
  };
}

const show = route({
  at: 'GET /v1/inbox',
  operationId: 'showInbox',
  summary: 'Show the inbox',
  description:
    'Returns the folder of the environment below INBOX_DIR, as this server sees it: files that wait, files that are being loaded, files that are ignored, and the outcomes of the last files. The folder is read once a second, and less often if it holds many files. Unknown parameters are refused.',
  access: 'read',
  config: pageBytes,
  query: listQuery({ limit: limitParameter(MAX_PAGE_SIZE, 'Maximum number of outcomes.') }),
  answer: { description: 'The inbox.', schema: inboxRecord.ref },
  prepare: lookTogether,
  handle: async ({ system, own: look, request, query: { limit = DEFAULT_PAGE_SIZE } }) => {
    const { inboxDir } = system.config;
    if (inboxDir === null) return nobodyWatches;
    const { name: environment } = callerEnvironment(request);
    const found = await inspectInbox(system.reader, inboxDir, { environment, limit, look });
    const status = found?.environments[0];
    return found === null || status === undefined ? nobodyWatches : render(status, found.recent);
  },
});

const takeAgain = route({
  at: 'POST /v1/inbox/:file_id/take_again',
  operationId: 'takeInAgain',
  summary: 'Take a failed file in again',
  description:
    'Moves the file from failed back to where it was dropped, so that workers take it in again, as its mapping.yaml says now. Its receipt stays. Returns 404 if the file is no longer in its place, or if another file of its name lies there.',
  access: 'import',
  params: idParameter('file_id', 'failed file'),
  answer: { status: 202, description: 'The file lies in the inbox again.', schema: takenAgain },
  handle: async ({ system, request, params: { file_id }, environment }) => {
    const { name } = await takeInAgain(system, system.config.inboxDir, environment, file_id);
    const fields = { file_id, file: name, request_id: request.id };
    system.log.info(fields, 'inbox: a failed file is taken again');
    return { file_id, name };
  },
});

export const inboxRoutes: readonly Route[] = [show, takeAgain];
