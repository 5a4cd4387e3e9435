import type { VNode } from 'preact';
import { api, mayUse } from '../lib/api.ts';
import { formatBytes, formatCount, visibleText } from '../lib/format.ts';
import { screenHref } from '../lib/place.ts';
import { useAction, useData } from '../lib/use-data.ts';
import { Badge, type Tone } from '../ui/badge.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Loading, Problems } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';

interface Waiting {
  readonly name: string;
  readonly size: number;
  readonly modified_at: string;
}

interface Taken {
  readonly file_id: string;
  readonly name: string;
  readonly size: number;
  readonly state: string;
  readonly claimed_at: string;
  readonly job_id: string | null;
}

interface Concluded {
  readonly file_id: string;
  readonly name: string;
  readonly size: number;
  readonly outcome: 'done' | 'failed';
  readonly path: string;
  readonly job_id: string | null;
  readonly is_duplicate: boolean;
  readonly rejected: number;
  readonly reasons: readonly {
    readonly error_code: string;
    readonly message: string;
    readonly details: string;
  }[];
  readonly concluded_at: string;
}

interface InboxRecord {
  readonly is_watched: boolean;
  readonly waiting: number;
  readonly files: readonly Waiting[];
  readonly taken: readonly Taken[];
  readonly ignored: readonly { readonly name: string; readonly why: string }[];
  readonly held: readonly string[];
  readonly recent: readonly Concluded[];
}

const path = '/v1/inbox';
const pollMs = 2_000;
/** The answer has no more of them. */
const mostTaken = 200;
const mostRecent = 50;

const name = {
  id: 'name',
  title: 'File',
  cell: ({ name }: { name: string }) => <span class="file-name">{visibleText(name)}</span>,
};
const size = {
  id: 'size',
  title: 'Size',
  isNumber: true,
  cell: ({ size }: { size: number }) => formatBytes(size),
};

/** The folder that is watched: what waits, what is being loaded, what became of the last files. */
export function Inbox(): VNode {
  const { data, error, reload } = useData(path, (signal) => api<InboxRecord>(path, { signal }), {
    everyMs: pollMs,
  });
  return (
    <Page title="Inbox">
      <Problems error={error} onRetry={reload} />
      {data === undefined ? <Loading /> : <Folder of={data} onChange={reload} />}
    </Page>
  );
}

function Folder({ of, onChange }: { readonly of: InboxRecord; readonly onChange: () => void }): VNode {
  if (!of.is_watched) {
    return (
      <div class="panel">
        <Empty title="No folder is watched">
          Set <code>INBOX_DIR</code> for the service and its workers: files that are dropped there are loaded.
        </Empty>
      </div>
    );
  }
  return (
    <>
      {of.held.map((folder) => (
        <p key={folder} class="notice">
          {folder === '.' ? 'The folder' : `The folder ${visibleText(folder)}`} is held: its mapping.yaml is
          wrong, and mapping.yaml.error says why. Its files wait.
        </p>
      ))}
      <div class="columns">
        <Section title="Waiting" aside={<span class="faint num">{formatCount(of.waiting)}</span>} flush>
          {of.files.length === 0 ? (
            <Empty title="Nothing waits" />
          ) : (
            <Table
              caption="Files that wait, the oldest first"
              columns={[
                name,
                size,
                {
                  id: 'age',
                  title: 'Written',
                  isNumber: true,
                  cell: ({ modified_at }: Waiting) => <Time at={modified_at} ago />,
                },
              ]}
              rows={of.files}
              keyOf={(file) => file.name}
            />
          )}
          {of.waiting > of.files.length ? (
            <p class="hint work-line">
              The oldest {formatCount(of.files.length)} of {formatCount(of.waiting)}.
            </p>
          ) : null}
        </Section>
        <Section
          title="Being loaded"
          aside={
            <span class="faint num">
              {formatCount(of.taken.length)}
              {of.taken.length === mostTaken ? ' or more' : ''}
            </span>
          }
          flush
        >
          {of.taken.length === 0 ? (
            <Empty title="Nothing is being loaded" />
          ) : (
            <Table
              caption="Files that were taken, in order of arrival"
              columns={takenColumns}
              rows={of.taken}
              keyOf={({ file_id }) => file_id}
            />
          )}
        </Section>
      </div>
      <Section
        title="Latest files"
        aside={of.recent.length === mostRecent ? <span class="faint">the latest {mostRecent}</span> : null}
        flush
      >
        {of.recent.length === 0 ? (
          <Empty title="No file has been taken yet" />
        ) : (
          <Table
            caption="Files that were taken, the newest first"
            isTall
            columns={concludedColumns(onChange)}
            rows={of.recent}
            keyOf={({ file_id }) => file_id}
          />
        )}
      </Section>
      {of.ignored.length === 0 ? null : (
        <Section title="Ignored files">
          <ul class="stack">
            {of.ignored.map((file) => (
              <li key={file.name} class="break">
                <strong>{visibleText(file.name)}</strong> {visibleText(file.why)}
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

const takenColumns: readonly Column<Taken>[] = [
  name,
  size,
  { id: 'state', title: 'State', cell: ({ state }) => <Badge tone="busy">{state}</Badge> },
  { id: 'since', title: 'Taken', isNumber: true, cell: ({ claimed_at }) => <Time at={claimed_at} ago /> },
];

function stateOf({ outcome, is_duplicate, rejected }: Concluded): readonly [Tone, string] {
  if (outcome === 'failed') return ['bad', outcome];
  if (rejected > 0) return ['warn', `done, ${formatCount(rejected)} refused`];
  return is_duplicate ? ['off', 'done before'] : ['good', outcome];
}

function concludedColumns(onChange: () => void): readonly Column<Concluded>[] {
  return [
    name,
    {
      id: 'outcome',
      title: 'State',
      cell: (file) => {
        const [tone, words] = stateOf(file);
        return <Badge tone={tone}>{words}</Badge>;
      },
    },
    {
      id: 'why',
      title: 'Job and reasons',
      cell: ({ job_id, rejected, reasons, path: place }) => (
        <ul class="two-lines">
          {job_id === null ? null : (
            <li>
              <a href={screenHref(`/jobs/${job_id}`)}>its job</a>
              {rejected === 0 ? null : (
                <>
                  , <a href={screenHref(`/jobs/${job_id}/refused`)}>its refused records</a>
                </>
              )}
            </li>
          )}
          {reasons.map(({ message, details }) => (
            <li key={message} class="break">
              {visibleText(message)} <span class="faint">{visibleText(details)}</span>
            </li>
          ))}
          <li class="faint break">{visibleText(place)}, with its receipt</li>
        </ul>
      ),
    },
    { id: 'size', title: 'Size', isNumber: true, isMinor: true, cell: (file) => formatBytes(file.size) },
    {
      id: 'at',
      title: 'At',
      isNumber: true,
      isMinor: true,
      cell: ({ concluded_at }) => <Time at={concluded_at} />,
    },
    { id: 'do', title: 'Action', cell: (file) => <Again of={file} onChange={onChange} /> },
  ];
}

function Again({ of, onChange }: { readonly of: Concluded; readonly onChange: () => void }): VNode | null {
  const again = useAction(async () => {
    await api(`${path}/${of.file_id}/take_again`, { method: 'POST' });
    onChange();
  });
  if (of.outcome !== 'failed') return null;
  return (
    <>
      <button
        type="button"
        class="button"
        disabled={!mayUse('import') || again.isRunning}
        title={mayUse('import') ? undefined : 'The key lacks the scope import'}
        onClick={() => void again.run()}
      >
        Take in again
      </button>
      <Problems error={again.error} />
    </>
  );
}
