/** The definitions file (docs/definitions.md): schema, reader and writer. */

import { type Static, type TSchema, Type } from 'typebox';
import { stringify } from 'yaml';
import { MAX_EVENT_NAME_BYTES, MAX_EVENT_RETENTION_DAYS, MAX_OPERATOR_FILE_ITEMS } from '../base/limits.ts';
import {
  type FileReading,
  type OperatorFile,
  type Place,
  publishedSchema,
  readOperatorFile,
} from '../base/operator-file/read.ts';
import {
  anything,
  atMostBytes,
  choice,
  flag,
  listOf,
  objectOf,
  text,
  wholeNumber,
  withDefault,
} from '../base/operator-file/schema.ts';
import { type Definitions, embedTypes, kinds, makers } from '../domain/definitions.ts';
import type { DefinitionList } from './seam.ts';
import { readSegment } from './segments/read-segment.ts';

const maxSurveyModules = 200;
const maxItemKeyChars = 100;
const maxItemTitleChars = 200;
const maxItemLabelChars = 100;
const maxQuestionChars = 2_000;

const keyPattern = [
  '^[A-Za-z0-9][A-Za-z0-9_.-]*$',
  'must be letters, digits, `_`, `.` and `-`, the first a letter or a digit',
] as const;
const linesPattern = [
  '^[^\\u0000-\\u0009\\u000b-\\u001f\\u007f-\\u009f]*$',
  'must not hold control characters, line feeds excepted',
] as const;

/** A key is unique within its kind. An item keeps its id for as long as it keeps its key. */
const key = (of: string) =>
  text({
    maxChars: maxItemKeyChars,
    pattern: keyPattern,
    description: `What this file calls the ${of}. Its id stays as long as its key does; all else may change.`,
  });
const filterKey = (of: string) =>
  text({
    maxChars: maxItemKeyChars,
    pattern: keyPattern,
    description: `The key of the ${of}, as exports are filtered by it.`,
  });
const eventKey = (description: string) =>
  text({ maxChars: MAX_EVENT_NAME_BYTES, problem: atMostBytes(MAX_EVENT_NAME_BYTES), description });
const title = text({ maxChars: maxItemTitleChars, description: 'What people call it.' });
const label = (description: string) => text({ maxChars: maxItemLabelChars, description });

export const segmentItemSchema = objectOf('a segment', 'A group of users that exports can be narrowed to.', {
  key: key('segment'),
  title,
  usage: withDefault(label('What it is used for.'), 'analytics'),
  category: withDefault(label('What it is sorted under.'), 'custom'),
  is_hidden: withDefault(
    flag('For clients: not to be offered for choice. It can be used all the same.'),
    false,
  ),
  is_protected: withDefault(
    flag('It is only removed by `sluice definitions apply --force`, or once this has been set to false.'),
    false,
  ),
  status: withDefault(label('For people and clients; sluice does nothing with it.'), 'active'),
  made_by: withDefault(
    choice(
      makers,
      'api: the API and the console may change it, and a file that lacks it does not remove it.',
    ),
    'file',
  ),
  // `readSegment` checks the definition later.
  definition: Type.Unsafe<object>(anything({ $ref: 'segment.schema.json' })),
});

const surveyModule = objectOf('a module', 'A question of the survey.', {
  key: key('module'),
  type: label('How it is answered: nps, text, choice, …'),
  question: text({ maxChars: maxQuestionChars, pattern: linesPattern, description: 'What is asked.' }),
});

const survey = objectOf('a survey', 'A survey and what it asks.', {
  key: key('survey'),
  title,
  platform: withDefault(label('Where it is shown.'), 'web'),
  modules: withDefault(
    listOf(surveyModule, 'The questions, in the order in which they are asked.', maxSurveyModules),
    [],
  ),
});

const embed = objectOf('an embed', 'A banner or a card.', {
  key: key('embed'),
  title,
  type: choice(embedTypes, 'Which of the two.'),
});

const titled = (what: string, of: string) =>
  objectOf(what, `A ${of}.`, {
    key: key(of),
    title,
    type: withDefault(label('What it is, in your own words.'), of),
  });

const keyed = (what: string, of: string, itemKey: ReturnType<typeof key>, dataType: string) =>
  objectOf(what, `A ${of}.`, {
    key: itemKey,
    display_name: title,
    data_type: withDefault(label('What clients are to take it for.'), dataType),
  });

const featureKey = eventKey(
  'The key of the feature. If events are tracked under the same name, the feature names them in the lookup.',
);

const retention = objectOf(
  'a retention of events',
  'How long events are kept in the database. They go by the month: with the last day of theirs.',
  {
    key: eventKey('The name of the event; `*` for all others, instead of EVENT_RETENTION_DAYS.'),
    days: wholeNumber('Days that it is kept; 0: for ever.', 0, MAX_EVENT_RETENTION_DAYS),
  },
);

const list = <S extends TSchema>(item: S, description: string) =>
  withDefault(listOf(item, description, MAX_OPERATOR_FILE_ITEMS), [] as Static<S>[]);

const coreLists = {
  segments: list(segmentItemSchema, 'Groups of users.'),
  surveys: list(survey, 'Surveys with their modules.'),
  embeds: list(embed, 'Banners and cards that stand within a page.'),
  flows: list(titled('a flow', 'flow'), 'Guided tours through the product.'),
  banners: list(titled('a banner', 'banner'), 'Banners that are shown over a page.'),
  spotlights: list(titled('a spotlight', 'spotlight'), 'Tooltips, hotspots and the like.'),
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
};

function schemaOf(lists: readonly DefinitionList[]) {
  return objectOf(
    'a definitions file',
    'What an operator of sluice defines for one environment. A kind of item that is left out has no items.',
    { ...coreLists, ...Object.fromEntries(lists.map(({ name, schema }) => [name, schema])) },
  );
}

export function definitionsFile(lists: readonly DefinitionList[]): OperatorFile<TSchema> {
  return {
    schema: schemaOf(lists),
    emptyHint: 'a file without items is written `segments: []`',
    check(root) {
      for (const kind of kinds) root.at([kind]).reportRepeats('key');
      for (const survey of root.at(['surveys']).items) survey.at(['modules']).reportRepeats('key');
      for (const segment of root.at(['segments']).items) checkDefinition(segment.at(['definition']));
      for (const { name, ignoresCase, check } of lists) {
        const list = root.at([name]);
        list.reportRepeats('key', ignoresCase);
        check?.(list);
      }
    },
  };
}

function checkDefinition(place: Place): void {
  if (!place.isThere || place.containsRefused) return;
  for (const { keys, message } of readSegment(place.value).problems) {
    const wrong = place.at(keys);
    wrong.report(message, keys.length === 0 ? wrong.position : wrong.name);
  }
}

const definitionText: OperatorFile<TSchema> = {
  schema: anything({}),
  emptyHint: 'write a condition, such as `{"property": "plan", "equals": "pro"}`',
  check: checkDefinition,
};

export function readDefinitionText(text: string): FileReading<unknown> {
  return readOperatorFile(Buffer.from(text), definitionText);
}

export function readDefinitionsFile(
  bytes: Uint8Array,
  lists: readonly DefinitionList[],
): FileReading<Definitions> {
  return readOperatorFile(bytes, definitionsFile(lists)) as FileReading<Definitions>;
}

export function definitionsFileSchema(lists: readonly DefinitionList[]): object {
  return publishedSchema('definitions', 'Definitions of sluice', schemaOf(lists));
}

export const fileFormats = ['yaml', 'json'] as const;
type FileFormat = (typeof fileFormats)[number];

export function writeDefinitionsFile(items: Definitions, format: FileFormat): string {
  if (format === 'json') return `${JSON.stringify(items, null, 2)}\n`;
  return stringify(items, { version: '1.2', schema: 'core', aliasDuplicateObjects: false, lineWidth: 100 });
}
