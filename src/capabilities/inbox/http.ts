import { TransientError } from '../../base/errors.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, READ_TIMEOUT_MS } from '../../base/limits.ts';
import { callerEnvironment } from '../../http/caller.ts';
import { limitParameter, pageBytes } from '../../http/page.ts';
import { idParameter } from '../../http/parameters.ts';
import { lenientQuery } from '../../http/plugins/validation.ts';
import { render } from '../../http/render.ts';
import { type Route, route } from '../../http/route.ts';
import { type Answer, createProbe, type ProbeOptions } from '../../telemetry/health/ready.ts';
import { type Inbox, inboxRecord, takenAgain } from './api.ts';
import type { InboxFile } from './files.ts';
import { placeOf } from './folders.ts';
import { type FolderScan, inspectInbox, scanFolder } from './inspect.ts';
import { takeInAgain } from './take-in.ts';

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
 * Scanning 100 000 files takes seconds. Therefore, scans begin at most once a second, and take at
 * most a tenth of the time.
 */
const scanOptions: ProbeOptions = {
  deadlineMs: READ_TIMEOUT_MS,
  keepMs: (tookMs, failed) => (failed ? 0 : Math.max(1_000, 9 * tookMs)),
};

/** Callers that ask for the same folder at about the same time share one scan. */
function shareScans(): (path: string) => Promise<FolderScan> {
  const probes = new Map<string, () => Promise<Answer<FolderScan>>>();
  return async (path) => {
    const probe = probes.get(path) ?? createProbe(() => scanFolder(path), scanOptions);
    probes.set(path, probe);
    const answer = await probe();
    if ('value' in answer) return answer.value;
    throw new TransientError('the folder cannot be looked at', { cause: answer.error });
  };
}

function renderTaken({ fileId, size, state, takenAt, jobId, ...file }: InboxFile) {
  const shown = state === 'concluded' ? 'loading' : state;
  return render({ fileId, name: placeOf(file), size: Number(size), state: shown, takenAt, jobId });
}

const show = route({
  at: 'GET /v1/inbox',
  operationId: 'showInbox',
  summary: 'Show the inbox',
  description:
    'Returns the folder of the environment below INBOX_DIR, as this server sees it: files that wait, files that are being loaded, files that are ignored, and the outcomes of the last files. The folder is read once a second, and less often if it holds many files.',
  access: 'read',
  config: pageBytes,
  query: lenientQuery({ limit: limitParameter(MAX_PAGE_SIZE, 'Maximum number of outcomes.') }),
  answer: { description: 'The inbox.', schema: inboxRecord.ref },
  prepare: shareScans,
  handle: async ({ system, prepared: scan, request, query: { limit = DEFAULT_PAGE_SIZE } }) => {
    const { inboxDir } = system.config;
    if (inboxDir === null) return nobodyWatches;
    const view = await inspectInbox(system.reader.db, inboxDir, callerEnvironment(request), limit, scan);
    if (view === null) return nobodyWatches;
    const { files, taken, recent, ...folder } = view;
    return {
      is_watched: true,
      ...folder,
      files: files.map(render),
      taken: taken.map(renderTaken),
      recent: recent.map(render),
    };
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
