import {
  MAX_CATALOGUE_ITEMS,
  MAX_EVENT_NAME_BYTES,
  MAX_EVENT_RETENTION_DAYS,
  MAX_ITEM_KEY_CHARS,
  MAX_ITEM_LABEL_CHARS,
  MAX_ITEM_TITLE_CHARS,
  MAX_QUESTION_CHARS,
  MAX_SURVEY_MODULES,
} from '../../domain/limits.ts';
import { type Field, optional } from '../../operator-file/field.ts';
import { keyedList } from '../../operator-file/list-field.ts';
import { objectOf } from '../../operator-file/object-field.ts';
import { choice, flag, text, wholeNumber } from '../../operator-file/scalar-fields.ts';
import {
  type CatalogueItems,
  type EmbedItem,
  embedTypes,
  type KeyedItem,
  type RetentionItem,
  type SegmentItem,
  type SurveyItem,
  type SurveyModule,
} from '../items/items.ts';
import { definition } from './definition-field.ts';

const keyPattern = [
  '^[A-Za-z0-9][A-Za-z0-9_.-]*$',
  'must be letters, digits, `_`, `.` and `-`, the first a letter or a digit',
] as const;
const linesPattern = [
  '^[^\\u0000-\\u0009\\u000b-\\u001f\\u007f-\\u009f]*$',
  'must not hold control characters, line feeds excepted',
] as const;

/** What the item's id hangs on. */
const key = (of: string): Field<string> =>
  text({
    maxChars: MAX_ITEM_KEY_CHARS,
    pattern: keyPattern,
    description: `What this file calls the ${of}. Its id stays as long as its key does; all else may change.`,
  });
const filterKey = (of: string): Field<string> =>
  text({
    maxChars: MAX_ITEM_KEY_CHARS,
    pattern: keyPattern,
    description: `The key of the ${of}, as exports are filtered by it.`,
  });
const title = text({ maxChars: MAX_ITEM_TITLE_CHARS, description: 'What people call it.' });
const label = (description: string): Field<string> => text({ maxChars: MAX_ITEM_LABEL_CHARS, description });

const segment: Field<SegmentItem> = objectOf(
  'a segment',
  'A group of users that exports can be narrowed to.',
  {
    key: key('segment'),
    title,
    usage: optional(label('What it is used for.'), 'analytics'),
    category: optional(label('What it is sorted under.'), 'custom'),
    is_hidden: optional(
      flag('For clients: not to be offered for choice. It can be used all the same.'),
      false,
    ),
    is_protected: optional(
      flag('It is only removed by `sluice catalogue apply --force`, or once this has been set to false.'),
      false,
    ),
    status: optional(label('For people and clients; sluice does nothing with it.'), 'active'),
    definition,
  },
);

const surveyModule: Field<SurveyModule> = objectOf('a module', 'A question of the survey.', {
  key: key('module'),
  type: label('How it is answered: nps, text, choice, …'),
  question: text({ maxChars: MAX_QUESTION_CHARS, pattern: linesPattern, description: 'What is asked.' }),
});

const survey: Field<SurveyItem> = objectOf('a survey', 'A survey and what it asks.', {
  key: key('survey'),
  title,
  platform: optional(label('Where it is shown.'), 'web'),
  modules: optional(
    keyedList(surveyModule, 'The questions, in the order in which they are asked.', MAX_SURVEY_MODULES),
    [],
  ),
});

const embed: Field<EmbedItem> = objectOf('an embed', 'A banner or a card.', {
  key: key('embed'),
  title,
  type: choice(embedTypes, 'Which of the two.'),
});

const keyed = (what: string, of: string, itemKey: Field<string>, dataType: string): Field<KeyedItem> =>
  objectOf(what, `A ${of}.`, {
    key: itemKey,
    display_name: text({ maxChars: MAX_ITEM_TITLE_CHARS, description: 'What people call it.' }),
    data_type: optional(label('What clients are told that it is.'), dataType),
  });

/** A feature's key may be the name of an event, whatever that is. */
const featureKey = text({
  maxChars: MAX_EVENT_NAME_BYTES,
  maxBytes: MAX_EVENT_NAME_BYTES,
  description:
    'The key of the feature. If events are tracked under the same name, the feature names them in the lookup.',
});

const retention: Field<RetentionItem> = objectOf(
  'a retention of events',
  'How long events are kept in the database. They go by the month: with the last day of theirs.',
  {
    key: text({
      maxChars: MAX_EVENT_NAME_BYTES,
      maxBytes: MAX_EVENT_NAME_BYTES,
      description: 'The name of the event; `*` for all others, instead of EVENT_RETENTION_DAYS.',
    }),
    days: wholeNumber('Days that it is kept; 0: for ever.', 0, MAX_EVENT_RETENTION_DAYS),
  },
);

const list = <T>(item: Field<T>, description: string): Field<readonly T[]> =>
  optional(keyedList(item, description, MAX_CATALOGUE_ITEMS), []);

/** A whole catalogue file: how it is read, and its JSON Schema. */
export const catalogueField: Field<CatalogueItems> = objectOf(
  'a catalogue',
  'What an operator of sluice defines for one environment. A kind of item that is left out has no items.',
  {
    segments: list(segment, 'Groups of users.'),
    surveys: list(survey, 'Surveys with their modules.'),
    embeds: list(embed, 'Banners and cards.'),
    resource_center_modules: list(
      keyed('a resource center module', 'module of the resource center', filterKey('module'), 'string'),
      'Modules of the resource center.',
    ),
    checklists: list(keyed('a checklist', 'checklist', filterKey('checklist'), 'string'), 'Checklists.'),
    features: list(keyed('a feature', 'feature', featureKey, 'feature'), 'Features of the product.'),
    event_retention: list(
      retention,
      'How long events are kept, by name. Those that are not named are kept as EVENT_RETENTION_DAYS says.',
    ),
  },
);
