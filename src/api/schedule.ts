import { type Static, Type } from 'typebox';
import { MAX_SHOWN_DUE_TIMES, MAX_TOLD_ITEMS, SHOWN_DUE_DAYS, SHOWN_RUNS } from '../domain/limits.ts';
import { runStatuses } from '../domain/task.ts';
import { closed, component, orNull } from './schema.ts';

const exampleTime = '2026-11-20T02:00:00.000Z';

const time = (description: string) =>
  Type.String({ format: 'date-time', description, examples: [exampleTime] });

const runFields = {
  due_at: time('The due time that it stands for.'),
  status: Type.Enum([...runStatuses], {
    type: 'string',
    description: 'queued → running → waiting for its jobs → ended.',
  }),
  cause: Type.Enum(['due', 'made_up', 'asked'], {
    type: 'string',
    description: 'The clock, a due time that was missed, or a person.',
  }),
  missed: Type.Integer({ minimum: 0, description: 'Due times before it that it stands for too.' }),
  started_at: orNull(time('When it was begun.')),
  ended_at: orNull(time('When it ended.')),
  error_code: orNull(Type.String({ description: 'Why it failed or was skipped.', examples: [null] })),
  message: orNull(Type.String({ description: 'The same for a person.', examples: [null] })),
  last_error: orNull(
    Type.String({ description: 'What the last attempt ran into, should another follow.', examples: [null] }),
  ),
};

const runExample = {
  due_at: exampleTime,
  status: 'completed',
  cause: 'due',
  missed: 0,
  started_at: exampleTime,
  ended_at: '2026-11-20T02:00:41.120Z',
  error_code: null,
  message: null,
  last_error: null,
};

const shortRun = Type.Object(runFields, closed);

export const scheduleItem = component(
  'Schedule',
  Type.Object(
    {
      schedule: Type.String({ description: 'Its name in the file.', examples: ['nightly-users'] }),
      kind: Type.Enum(['load', 'export'], { type: 'string', description: 'What a run does.' }),
      what: Type.String({ description: 'Where it loads from, or what it exports; without secrets.' }),
      cron: Type.String({ description: 'When it is due.', examples: ['0 2 * * *'] }),
      time_zone: Type.String({ description: 'Whose clock that is.', examples: ['Europe/Berlin'] }),
      enabled: Type.Boolean({ description: 'As the file says.' }),
      paused_at: orNull(time('Since when it is paused; null: it is not.')),
      missed: Type.Enum(['run_once', 'run_all', 'skip'], {
        type: 'string',
        description: 'What becomes of due times for which nobody was there.',
      }),
      overlap: Type.Enum(['skip', 'wait'], {
        type: 'string',
        description: 'What becomes of one that is due before the run before has ended.',
      }),
      next_due: orNull(time('When it is due next; null: it is disabled or paused.')),
      due_times: Type.Array(time('A due time.'), {
        maxItems: MAX_SHOWN_DUE_TIMES,
        description: `Those of the ${SHOWN_DUE_DAYS} days to come.`,
      }),
      due_times_are_all: Type.Boolean({ description: 'There are no more of them in these days.' }),
      runs: Type.Array(shortRun, {
        maxItems: SHOWN_RUNS,
        description: `The latest ${SHOWN_RUNS}, latest due time first.`,
      }),
    },
    {
      ...closed,
      description: 'A schedule of the file, and how it fares.',
      examples: [
        {
          schedule: 'nightly-users',
          kind: 'load',
          what: 'files /data/users-*.csv',
          cron: '0 2 * * *',
          time_zone: 'UTC',
          enabled: true,
          paused_at: null,
          missed: 'run_once',
          overlap: 'skip',
          next_due: '2026-11-21T02:00:00.000Z',
          due_times: ['2026-11-21T02:00:00.000Z'],
          due_times_are_all: true,
          runs: [runExample],
        },
      ],
    },
  ),
);
export type Schedule = Static<typeof scheduleItem.schema>;

export const scheduleList = component(
  'ScheduleList',
  Type.Object(
    {
      is_configured: Type.Boolean({ description: 'SCHEDULES_FILE is set for this server.' }),
      problems: Type.Array(Type.String(), {
        description: 'What is wrong with the file, with lines; workers go on with what it said before.',
      }),
      data: Type.Array(scheduleItem.ref, { description: 'In the order of the file.' }),
    },
    { ...closed, description: 'The schedules of the environment.' },
  ),
);
export type ScheduleList = Static<typeof scheduleList.schema>;

export const scheduleRun = component(
  'ScheduleRun',
  Type.Object(
    {
      schedule: Type.String({ description: 'Its name.' }),
      environment: Type.String({ description: 'Name of the environment.' }),
      ...runFields,
      attempts: Type.Integer({ minimum: 0, description: 'How often it was begun.' }),
      range_from: orNull(time('Of an export with a range: where it began.')),
      range_to: orNull(time('Where it ended.')),
      delivered_to: orNull(
        Type.String({ description: 'The folder that its files were copied to.', examples: [null] }),
      ),
      items: Type.Array(
        Type.Object(
          {
            item: Type.String({ description: 'A file, an object, an address; or `export`.' }),
            job_id: orNull(Type.String({ format: 'uuid', description: 'Its job; null: it was refused.' })),
            is_new: Type.Boolean({
              description: 'False: the same bytes had been loaded before, by this job.',
            }),
            error_code: orNull(Type.String({ description: 'Why it was refused.', examples: [null] })),
            message: orNull(Type.String({ description: 'The same for a person.', examples: [null] })),
          },
          closed,
        ),
        { maxItems: MAX_TOLD_ITEMS, description: 'What it took, each with its job.' },
      ),
      item_count: Type.Integer({ minimum: 0, description: 'Items that it took, shown or not.' }),
    },
    {
      ...closed,
      description: 'A run of a schedule.',
      examples: [
        {
          schedule: 'nightly-users',
          environment: 'default',
          ...runExample,
          attempts: 1,
          range_from: null,
          range_to: null,
          delivered_to: null,
          items: [
            {
              item: '/data/users-1.csv',
              job_id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01',
              is_new: true,
              error_code: null,
              message: null,
            },
          ],
          item_count: 1,
        },
      ],
    },
  ),
);
export type ScheduleRun = Static<typeof scheduleRun.schema>;
