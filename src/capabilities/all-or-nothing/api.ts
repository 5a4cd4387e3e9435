import type { Static } from 'typebox';
import { choice, object, orNull, text, uuid } from '../../http/schema.ts';

export const states = {
  ready: 'the load has not ended',
  not_needed: 'the load completed, or wrote nothing',
  undoing: 'the undo is queued or running',
  undone: 'the undo is completed',
  undo_failed: 'the undo failed, and a part of the load remains; retry the undo',
  undo_cancelled: 'somebody cancelled the undo, and a part of the load remains; retry the undo',
} as const;
export type State = keyof typeof states;

const stateNames = Object.keys(states) as State[];
const stateTexts = Object.entries(states).map(([name, meaning]) => `\`${name}\`: ${meaning}.`);

export const onFailureField = orNull(
  object('Whether the load is undone because it failed or was cancelled. Null without `on_failure`.', {
    action: choice(['undo'], 'The value of the option.', 'undo'),
    state: choice(stateNames, stateTexts.join(' '), 'undone'),
    job_id: orNull(uuid('The job that undoes the load. Null if there is none.')),
    summary: orNull(
      text(
        'The same as a sentence. Null if there is nothing to say.',
        'the load is undone by job 01a1f879-8845-7223-9ca4-ceafb3823817',
      ),
    ),
  }),
  null,
);
export type OnFailureField = Static<typeof onFailureField>;
