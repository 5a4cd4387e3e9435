import type { VNode } from 'preact';
import { useLocation, useRoute } from 'preact-iso';
import { screenHref } from '../../../console/client/lib/address.ts';
import { api, post } from '../../../console/client/lib/api.ts';
import { useApi } from '../../../console/client/lib/data.ts';
import { formatMs, formatTime, plural, visibleText } from '../../../console/client/lib/format.ts';
import { jobHref } from '../../../console/client/lib/jobs.ts';
import { ActionButton, named } from '../../../console/client/ui/controls.tsx';
import { ConfirmButton } from '../../../console/client/ui/dialog.tsx';
import { Icon } from '../../../console/client/ui/drawings.tsx';
import { type Column, List } from '../../../console/client/ui/list.tsx';
import {
  Badge,
  inTone,
  Page,
  Section,
  Time,
  type Tone,
  TwoLines,
  toneIcons,
} from '../../../console/client/ui/page.tsx';
import type { Schedule, ScheduleList, ScheduleRun } from '../api.ts';
import { ScheduleEditor } from './edit-schedule.tsx';

const path = '/v1/schedules';

export function Schedules(): VNode {
  const list = useApi<ScheduleList>(path, 5_000);
  return (
    <Page
      title="Schedules"
      actions={
        <a class="button button-main" href={screenHref('/schedules/-/new')}>
          New schedule
        </a>
      }
    >
      <List
        of={{ ...list, data: list.data?.data }}
        caption="Schedules"
        columns={scheduleColumns(list.reload)}
        keyOf={({ schedule }) => schedule}
        hrefOf={({ schedule }) => screenHref(`/schedules/${schedule}`)}
        empty="No schedules yet"
      />
    </Page>
  );
}

function scheduleColumns(onChange: () => void): readonly Column<Schedule>[] {
  return [
    ['Schedule', ({ schedule }) => <span class="name">{schedule}</span>],
    [
      'What',
      ({ what, cron, time_zone }) => <TwoLines below={`${cron} ${time_zone}`}>{visibleText(what)}</TwoLines>,
      'minor',
    ],
    [
      'Latest runs',
      (of) => (
        <TwoLines below={of.runs[0]?.status === 'failed' ? whyOf(of.runs[0]) : null}>
          {squaresOf(of)}
        </TwoLines>
      ),
    ],
    ['Next', nextOf, 'num'],
    ['Actions', (schedule) => <Actions of={schedule} onChange={onChange} />, 'minor'],
  ];
}

function nextOf(of: Schedule): VNode {
  if (of.paused_at !== null) return <Badge tone="off">paused</Badge>;
  if (!of.enabled) return <Badge tone="off">disabled</Badge>;
  return <Time at={of.next_due} ago />;
}

function Actions({ of, onChange }: { readonly of: Schedule; readonly onChange: () => void }): VNode {
  const scopes = of.kind === 'load' ? (['import'] as const) : (['import', 'export'] as const);
  const isPaused = of.paused_at !== null;
  const schedulePath = `${path}/${of.schedule}`;
  const run = () => post(`${schedulePath}/runs`, {}).then(onChange);
  const pause = () => api(schedulePath, { method: 'PATCH', body: { paused: !isPaused } }).then(onChange);
  return (
    <div class="row">
      <ActionButton scopes={scopes} act={run}>
        {named('Run now', of.schedule)}
      </ActionButton>
      <ActionButton look="quiet" scopes={scopes} act={pause}>
        {named(isPaused ? 'Resume' : 'Pause', of.schedule)}
      </ActionButton>
    </div>
  );
}

type ShortRun = Schedule['runs'][number];

const tones: Readonly<Record<ShortRun['status'], Tone>> = {
  queued: 'waiting',
  running: 'busy',
  waiting: 'busy',
  held: 'warn',
  completed: 'good',
  completed_with_rejects: 'warn',
  unchanged: 'off',
  skipped: 'warn',
  failed: 'bad',
};

type RunState = Pick<ShortRun, 'status' | 'failure' | 'held_job' | 'last_error'>;

function toneOf({ status, last_error }: RunState): Tone {
  return status === 'queued' && last_error !== null ? 'bad' : tones[status];
}

function whyOf({ failure, held_job, last_error }: RunState): string | null {
  const held = held_job === null ? null : `job ${held_job} waits for a person`;
  const why = failure?.message ?? held ?? last_error;
  return why === null ? null : visibleText(why);
}

const squares = 14;

function squaresOf(of: Schedule): VNode {
  const runs = of.runs.toReversed();
  return (
    <ol class="squares" aria-label={`The latest ${plural(runs.length, 'run')} of ${of.schedule}`}>
      {Array.from({ length: squares - runs.length }, (_, at) => (
        <li key={at} class="square square-none" aria-hidden="true" />
      ))}
      {runs.map((run) => {
        const tone = toneOf(run);
        const why = whyOf(run);
        const words = `${formatTime(run.due_at)}: ${run.status.replaceAll('_', ' ')}${why === null ? '' : `: ${why}`}`;
        return (
          <li key={run.due_at} class="square" style={inTone(tone)} title={words}>
            <Icon name={toneIcons[tone]} size={10} />
            <span class="visually-hidden">{words}</span>
          </li>
        );
      })}
    </ol>
  );
}

const mostRuns = 50;

export function ScheduleRuns(): VNode {
  const { schedule = '' } = useRoute().params;
  const runsPath = `${path}/${encodeURIComponent(schedule)}/runs`;
  const runs = useApi<readonly ScheduleRun[]>(runsPath, 3_000);
  // The API does not return a deleted schedule, but lists its runs while one of them is open.
  const { data: item, reload } = useApi<Schedule>(`${path}/${encodeURIComponent(schedule)}`, 5_000);
  const onChange = (): void => {
    reload();
    runs.reload();
  };
  const repeat = (run: ScheduleRun) => () => post(runsPath, { due_at: run.due_at }).then(runs.reload);
  return (
    <Page
      title={visibleText(schedule)}
      parent={{ title: 'Schedules', href: screenHref('/schedules') }}
      aside={item === undefined ? null : nextOf(item)}
      actions={item === undefined ? null : <Changes of={item} onChange={onChange} />}
    >
      <List
        title="Runs"
        aside={runs.data?.length === mostRuns ? <span class="faint">the latest {mostRuns}</span> : null}
        of={runs}
        caption="Runs, latest due time first"
        isTall
        columns={runColumns(repeat)}
        keyOf={({ due_at }) => due_at}
        empty="It has not run yet"
      />
      {item === undefined ? null : <Definition of={item} onSaved={reload} />}
    </Page>
  );
}

function Definition({ of, onSaved }: { readonly of: Schedule; readonly onSaved: () => void }): VNode {
  const { schedule, definition, next_times: times } = of;
  return (
    <Section title="Definition">
      <p>
        {times.length === 0 ? 'It is not due.' : 'Next due: '}
        {times.map((at) => formatTime(at)).join(', ')}
      </p>
      <ScheduleEditor
        key={JSON.stringify(definition)}
        name={schedule}
        definition={definition}
        onSaved={onSaved}
      />
    </Section>
  );
}

function Changes({ of, onChange }: { readonly of: Schedule; readonly onChange: () => void }): VNode {
  const { schedule, kind } = of;
  const { route } = useLocation();
  const remove = () =>
    api(`${path}/${schedule}`, { method: 'DELETE' }).then(() => route(screenHref('/schedules')));
  return (
    <>
      <Actions of={of} onChange={onChange} />
      <ConfirmButton
        label="Delete …"
        scopes={kind === 'load' ? 'import' : ['import', 'export']}
        title="Delete the schedule"
        sentence="The schedule and its history are deleted. Its jobs stay."
        verb="Delete"
        isDestructive
        act={remove}
      />
    </>
  );
}

function runColumns(repeat: (run: ScheduleRun) => () => Promise<unknown>): readonly Column<ScheduleRun>[] {
  return [
    ['Due', ({ due_at }) => <Time at={due_at} />],
    ['State', (run) => <Badge tone={toneOf(run)}>{run.status.replaceAll('_', ' ')}</Badge>],
    ['By', ({ cause }) => cause.replaceAll('_', ' '), 'minor'],
    ['Jobs and reasons', jobsOf],
    ['Took', (run) => formatMs(tookMs(run)), 'num minor'],
    [
      'Action',
      (run) =>
        run.status === 'failed' || run.status === 'skipped' ? (
          <ActionButton scopes="import" act={repeat(run)}>
            Run again
          </ActionButton>
        ) : null,
    ],
  ];
}

function tookMs({ status, phases }: ScheduleRun): number | null {
  const start = phases.find(({ phase }) => phase === 'started');
  const end = phases.find(({ phase }) => phase === status);
  return start === undefined || end === undefined ? null : Date.parse(end.at) - Date.parse(start.at);
}

function jobsOf(of: ScheduleRun): VNode {
  const why = whyOf(of);
  const rest = of.item_count - of.items.length;
  return (
    <ul class="two-lines">
      {why === null ? null : <li class="break">{why}</li>}
      {of.items.map(({ item, job_id, is_new, message }) => (
        <li key={item} class="break">
          {job_id === null ? visibleText(item) : <a href={jobHref(job_id)}>{visibleText(item)}</a>}
          <span class="faint">
            {is_new || job_id === null ? '' : ' loaded before'}
            {message === null || message === of.failure?.message ? '' : ` ${visibleText(message)}`}
          </span>
        </li>
      ))}
      {rest > 0 ? <li class="faint">and {rest} more</li> : null}
      {of.missed > 0 ? <li class="faint">also covers {plural(of.missed, 'earlier due time')}</li> : null}
    </ul>
  );
}
