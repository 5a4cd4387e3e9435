import type { VNode } from 'preact';
import { api, mayUse } from '../lib/api.ts';
import { formatCount, visibleText } from '../lib/format.ts';
import { screenHref } from '../lib/place.ts';
import { useAction, useData } from '../lib/use-data.ts';
import { useQuery } from '../lib/use-query.ts';
import { Badge } from '../ui/badge.tsx';
import { Page, Section } from '../ui/page.tsx';
import { Empty, Loading, Problems } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';
import { Runs, type Schedule } from './schedule-runs.tsx';

interface ScheduleList {
  readonly is_configured: boolean;
  readonly problems: readonly string[];
  readonly data: readonly Schedule[];
}

const path = '/v1/schedules';
const pollMs = 5_000;

/** Loads and exports by the clock: how the last runs went, what is due in a week. */
export function Schedules(): VNode {
  const { data, error, reload } = useData(path, (signal) => api<ScheduleList>(path, { signal }), {
    everyMs: pollMs,
  });
  return (
    <Page title="Schedules">
      <Problems error={error} onRetry={reload} />
      {data === undefined ? <Loading /> : <List of={data} onChange={reload} />}
    </Page>
  );
}

function List({ of, onChange }: { readonly of: ScheduleList; readonly onChange: () => void }): VNode {
  const query = useQuery();
  if (!of.is_configured) {
    return (
      <div class="panel">
        <Empty title="There is no schedules file">
          Set <code>SCHEDULES_FILE</code>; an export can be written as a schedule on{' '}
          <a href={screenHref('/export')}>its page</a>.
        </Empty>
      </div>
    );
  }
  return (
    <>
      {of.problems.length === 0 ? null : (
        <div class="notice">
          <div>
            <p>The file is wrong. Workers continue with its last valid version.</p>
            <ul class="mono">
              {of.problems.map((problem) => (
                <li key={problem} class="break">
                  {visibleText(problem)}
                </li>
              ))}
            </ul>
          </div>
        </div>
      )}
      <div class="panel">
        {of.data.length === 0 ? (
          <Empty title="The file has no schedule for this environment" />
        ) : (
          <Table
            caption="Schedules, in the order of the file"
            columns={columnsWith(onChange)}
            rows={of.data}
            keyOf={({ schedule }) => schedule}
            hrefOf={({ schedule }) => screenHref(`/schedules/${schedule}`)}
            selected={query.get('row')}
            onSelect={(row) => query.set({ row }, { replace: true })}
          />
        )}
      </div>
      {of.data.length === 0 ? null : <Week of={of.data} />}
    </>
  );
}

function columnsWith(onChange: () => void): readonly Column<Schedule>[] {
  return [
    {
      id: 'name',
      title: 'Schedule',
      cell: ({ schedule }) => <span class="schedule-name">{schedule}</span>,
    },
    {
      id: 'what',
      title: 'What',
      isMinor: true,
      cell: ({ what, cron, time_zone }) => (
        <span class="two-lines">
          <span class="break">{visibleText(what)}</span>
          <span class="faint">
            <code>{cron}</code> {time_zone}
          </span>
        </span>
      ),
    },
    { id: 'runs', title: 'Latest runs', cell: (schedule) => <Runs of={schedule} /> },
    { id: 'next', title: 'Next', isNumber: true, cell: (schedule) => <Next of={schedule} /> },
    {
      id: 'do',
      title: 'Actions',
      isMinor: true,
      cell: (schedule) => <Actions of={schedule} onChange={onChange} />,
    },
  ];
}

export function Next({ of }: { readonly of: Schedule }): VNode {
  if (of.paused_at !== null) return <Badge tone="off">paused</Badge>;
  if (!of.enabled) return <Badge tone="off">disabled</Badge>;
  return <Time at={of.next_due} ago />;
}

export function Actions({ of, onChange }: { readonly of: Schedule; readonly onChange: () => void }): VNode {
  const own = `${path}/${of.schedule}`;
  const run = useAction(async () => {
    await api(`${own}/runs`, { method: 'POST', body: {} });
    onChange();
  });
  const isPaused = of.paused_at !== null;
  const pause = useAction(async () => {
    await api(`${own}/${isPaused ? 'resume' : 'pause'}`, { method: 'POST' });
    onChange();
  });
  const may = mayUse('import') && (of.kind === 'load' || mayUse('export'));
  const title = may ? undefined : 'The key lacks the scope import, or export for an export';
  return (
    <div class="row">
      <button
        type="button"
        class="button"
        disabled={!may || run.isRunning}
        title={title}
        onClick={() => void run.run()}
      >
        Run now<span class="visually-hidden"> {of.schedule}</span>
      </button>
      <button
        type="button"
        class="button button-quiet"
        disabled={!may || pause.isRunning}
        title={title}
        onClick={() => void pause.run()}
      >
        {isPaused ? 'Resume' : 'Pause'}
        <span class="visually-hidden"> {of.schedule}</span>
      </button>
      <Problems error={run.error ?? pause.error} />
    </div>
  );
}

/** Of a schedule that is due more often, a day shows only how often. */
const mostTimes = 6;
const weekday = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' });
const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

/** All due times of the days to come, in the reader's zone. */
function Week({ of }: { readonly of: readonly Schedule[] }): VNode {
  const days = new Map<string, Map<string, string[]>>();
  for (const { schedule, due_times } of of) {
    for (const due of due_times) {
      const day = weekday.format(new Date(due));
      const times = days.get(day) ?? new Map<string, string[]>();
      times.set(schedule, [...(times.get(schedule) ?? []), clock.format(new Date(due))]);
      days.set(day, times);
    }
  }
  const inOrder = [
    ...new Set(
      of
        .flatMap(({ due_times }) => due_times)
        .sort()
        .map((due) => weekday.format(new Date(due))),
    ),
  ];
  const isCut = of.some(({ due_times_are_all }) => !due_times_are_all);
  return (
    <Section title="Due in the next seven days">
      {inOrder.length === 0 ? (
        <p class="muted">Nothing is due.</p>
      ) : (
        <ol class="week">
          {inOrder.map((day) => (
            <li key={day}>
              <h3>{day}</h3>
              <ul>
                {[...(days.get(day) ?? [])].map(([schedule, times]) => (
                  <li key={schedule}>
                    <span class="num">
                      {times.length > mostTimes ? `${formatCount(times.length)} times` : times.join(', ')}
                    </span>{' '}
                    <a href={screenHref(`/schedules/${schedule}`)}>{schedule}</a>
                  </li>
                ))}
              </ul>
            </li>
          ))}
        </ol>
      )}
      {isCut ? <p class="hint">Only the first 400 due times of each schedule are shown.</p> : null}
    </Section>
  );
}
