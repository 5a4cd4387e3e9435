import type { VNode } from 'preact';
import { post } from '../../../console/client/lib/api.ts';
import { useApi } from '../../../console/client/lib/data.ts';
import { formatBytes, formatCount, visibleText } from '../../../console/client/lib/format.ts';
import { jobHref, refusedHref } from '../../../console/client/lib/jobs.ts';
import { ActionButton } from '../../../console/client/ui/controls.tsx';
import { type Column, List } from '../../../console/client/ui/list.tsx';
import { Badge, Empty, Loaded, Notice, Page, Section, Time } from '../../../console/client/ui/page.tsx';
import type { Inbox as InboxRecord } from '../api.ts';

type ConcludedFile = InboxRecord['recent'][number];

const path = '/v1/inbox';
const mostTaken = 200;
const mostRecent = 50;

export function Inbox(): VNode {
  const inbox = useApi<InboxRecord>(path, 2_000);
  const takeAgain =
    ({ file_id }: ConcludedFile) =>
    () =>
      post(`${path}/${file_id}/take_again`).then(inbox.reload);
  return (
    <Page title="Inbox">
      <Loaded of={inbox}>
        {(data) =>
          data.is_watched ? (
            <Folder of={data} takeAgain={takeAgain} />
          ) : (
            <div class="panel">
              <Empty title="No folder is watched">
                Set <code>INBOX_DIR</code> for the service and its workers: files that are dropped there are
                loaded.
              </Empty>
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}

interface FolderProps {
  readonly of: InboxRecord;
  readonly takeAgain: (file: ConcludedFile) => () => Promise<unknown>;
}

function Folder({ of, takeAgain }: FolderProps): VNode {
  return (
    <>
      {of.held.map((folder) => (
        <Notice key={folder}>
          {folder === '.' ? 'The folder' : `The folder ${visibleText(folder)}`} is held: its mapping.yaml has
          an error, which mapping.yaml.error explains. Its files wait.
        </Notice>
      ))}
      <List
        title="Waiting and being loaded"
        aside={
          <span class="faint num">
            {formatCount(of.waiting)} waiting, {formatCount(of.taken.length)}
            {of.taken.length === mostTaken ? ' or more' : ''} being loaded
          </span>
        }
        of={[
          ...of.taken.map((file) => ({ ...file, key: file.file_id, at: file.taken_at })),
          ...of.files.map((file) => ({ ...file, key: file.name, state: 'waiting', at: file.modified_at })),
        ]}
        caption="Files that were taken, in order of arrival, and the oldest that wait"
        columns={arrivedColumns}
        keyOf={({ key }) => key}
        empty="No files are waiting or being loaded"
      />
      <List
        title="Latest files"
        aside={of.recent.length === mostRecent ? <span class="faint">the latest {mostRecent}</span> : null}
        of={of.recent}
        caption="Files that were taken, the newest first"
        isTall
        columns={concludedColumns(takeAgain)}
        keyOf={({ file_id }) => file_id}
        empty="No file has been taken yet"
      />
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

interface Named {
  readonly name: string;
  readonly size: number;
}
const name: Column<Named> = ['File', (file) => <span class="name">{visibleText(file.name)}</span>];
const size: Column<Named> = ['Size', (file) => formatBytes(file.size), 'num'];

const arrivedColumns: readonly Column<Named & { readonly state: string; readonly at: string }>[] = [
  name,
  size,
  ['State', ({ state }) => <Badge tone={state === 'waiting' ? 'waiting' : 'busy'}>{state}</Badge>],
  ['Since', ({ at }) => <Time at={at} ago />, 'num'],
];

function stateOf({ outcome, is_duplicate, rejected }: ConcludedFile): VNode {
  if (outcome === 'failed') return <Badge tone="bad">failed</Badge>;
  if (rejected > 0) return <Badge tone="warn">done, {formatCount(rejected)} refused</Badge>;
  return is_duplicate ? <Badge tone="off">done before</Badge> : <Badge tone="good">{outcome}</Badge>;
}

function concludedColumns(takeAgain: FolderProps['takeAgain']): readonly Column<ConcludedFile>[] {
  return [
    name,
    ['State', stateOf],
    ['Job and reasons', outcomeOf],
    ['Size', size[1], 'num minor'],
    ['At', ({ concluded_at }) => <Time at={concluded_at} />, 'num minor'],
    [
      'Action',
      (file) =>
        file.outcome === 'failed' ? (
          <ActionButton scopes="import" act={takeAgain(file)}>
            Load again
          </ActionButton>
        ) : null,
    ],
  ];
}

function outcomeOf({ job_id, rejected, reasons, path: place }: ConcludedFile): VNode {
  return (
    <ul class="two-lines">
      {job_id === null ? null : (
        <li>
          <a href={jobHref(job_id)}>its job</a>
          {rejected === 0 ? null : (
            <>
              , <a href={refusedHref(job_id)}>its refused records</a>
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
  );
}
