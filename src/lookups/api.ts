import { type Static, type TSchema, Type } from 'typebox';
import { SEGMENT_PREVIEW_USERS } from '../base/limits.ts';
import { dataTypes } from '../domain/data-type.ts';
import { embedTypes, makers } from '../domain/definitions.ts';
import {
  anyObject,
  choice,
  count,
  defineRecord,
  flag,
  items,
  listOf,
  object,
  ordinal,
  orNull,
  text,
} from '../http/schema.ts';

export const MAX_LOOKUP_PAGE_SIZE = 200;

const id = ordinal('ID of the item. Never reused.');
const title = text('Display name.', 'Quarterly NPS');

const surveyModule = object('One question of a survey.', {
  id,
  order: ordinal('Position in the survey.'),
  type: text('Kind of question, as the operator named it.', 'nps'),
  question: text('The question.', 'How likely are you to recommend us?'),
});

export const surveyItem = defineRecord('Survey', 'A survey and its questions.', {
  id,
  title,
  platform: text('Where the survey is shown, as the operator named it.', 'web'),
  modules: listOf('The questions, in order.', surveyModule),
});

export const embedItem = defineRecord('Embed', 'A banner or a card.', {
  id,
  title,
  type: choice(embedTypes, 'Kind of embed.'),
});

export const titledItem = defineRecord('TitledItem', 'A flow, a banner or a spotlight.', {
  id,
  title,
  type: text('Kind of item, as the operator named it.', 'flow'),
});

export const propertyItem = defineRecord('Property', 'A property of users, companies or events.', {
  id,
  type: choice(['user_property', 'company_property', 'event_property'], 'What has the property.'),
  key: text('Name of the property in `metadata`.', 'signup_date'),
  display_name: text('Display name, made from the key.', 'Signup Date'),
  data_type: choice(dataTypes, 'Type of the values. `string` also stands for values of several types.'),
  is_auto_property: flag('True if the service itself maintains the property.'),
});
export type Property = Static<typeof propertyItem.schema>;

export const keyedItem = defineRecord('KeyedItem', 'An item that is identified by a key.', {
  display_name: text('Display name.', 'Report Exported'),
  key: text('Key by which exports are filtered.', 'report_exported'),
  data_type: text('Kind of item, as the operator named it; `event` for a tracked event.', 'event'),
});

const segmentFields = {
  id: ordinal('ID of the segment: the `segment_id` of exports.', 3),
  title: text('Display name.', 'Power users'),
  usage: text('Purpose, as the operator named it.', 'analytics'),
  category: text('Category, as the operator named it.', 'Engagement'),
  is_hidden: flag('True if clients should not offer the segment. It can be used all the same.'),
  is_protected: flag('True if the segment is protected from accidental removal.'),
  status: text('Status, as the operator named it. The service ignores it.', 'active'),
};

const segmentItem = defineRecord(
  'Segment',
  'A group of users that exports can be narrowed to.',
  segmentFields,
);
export type Segment = Static<typeof segmentItem.schema>;

const lookupPage = <T extends TSchema>(name: string, item: T, what: string, key: string) =>
  defineRecord(name, `A page of ${what}, sorted by ${key}.`, {
    data: listOf(`The ${what} of the page.`, item),
    metadata: object('Facts about the page.', {
      cursor: object('Cursors of the neighbouring pages.', {
        after: text('`after_cursor` of the next page. Empty on the last page.'),
        before: orNull(text('`before_cursor` of the previous page. Null on the first page.'), null),
      }),
      limit: Type.Integer({
        minimum: 1,
        maximum: MAX_LOOKUP_PAGE_SIZE,
        description: `Maximum number of ${what} on a page.`,
        examples: [100],
      }),
      total_count: count(`Number of ${what} on all pages.`, 1),
    }),
  });

export const segmentPage = lookupPage('SegmentPage', segmentItem.ref, 'segments', 'ID');
export const eventPropertyPage = lookupPage('EventPropertyPage', propertyItem.ref, 'properties', 'key');
export type EventPropertyPage = Static<typeof eventPropertyPage.schema>;
export type SegmentPage = Static<typeof segmentPage.schema>;

const definitionWords = items('The definition in words: one line for each group and condition, in order.', {
  depth: count('Number of groups that the line is nested in.'),
  text: text('A group or a condition.', 'did at least 3 times "report_exported"'),
});

export const segmentDetail = defineRecord('SegmentDetail', 'A segment with its definition.', {
  ...segmentFields,
  key: text('Name in the definitions file.', 'power-users'),
  made_by: choice(
    makers,
    '`file`: the definitions file has it, and the API does not change it. `api`: a file without it leaves it alone.',
    'api',
  ),
  definition: anyObject('The definition, in the language of docs/segments.md.', {
    event: 'report_exported',
    at_least: 3,
  }),
  words: definitionWords,
});
export type SegmentDetail = Static<typeof segmentDetail.schema>;

export const definitionPreview = defineRecord('DefinitionPreview', 'Users whom a definition matches.', {
  count: count('Number of users whom the definition matches now.', 3120),
  user_ids: listOf(`The first of them by ID, at most ${SEGMENT_PREVIEW_USERS}.`, Type.String(), {
    maxItems: SEGMENT_PREVIEW_USERS,
    examples: [['u1', 'u17', 'u4']],
  }),
  words: definitionWords,
});
export type DefinitionPreview = Static<typeof definitionPreview.schema>;
