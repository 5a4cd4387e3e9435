import { type Static, Type } from 'typebox';
import { dataTypes } from '../domain/data-type.ts';
import { embedTypes } from '../domain/definitions.ts';
import { choice, component, flag, object, ordinal, text } from './schema.ts';

const id = ordinal('ID of the item. Never reused.');
const title = text('Display name.');

const surveyModule = object(
  {
    id,
    order: ordinal('Position in the survey.'),
    type: text('Kind of question, as the operator named it.'),
    question: text('The question.'),
  },
  'One question of a survey.',
);

export const surveyItem = component(
  'Survey',
  object(
    {
      id,
      title,
      platform: text('Where the survey is shown, as the operator named it.'),
      modules: Type.Array(surveyModule, { description: 'The questions, in order.' }),
    },
    'A survey and its questions.',
    {
      id: 1,
      title: 'Quarterly NPS',
      platform: 'web',
      modules: [{ id: 1, order: 1, type: 'nps', question: 'How likely are you to recommend us?' }],
    },
  ),
);

export const embedItem = component(
  'Embed',
  object({ id, title, type: choice(embedTypes, 'Kind of embed.') }, 'A banner or a card.', {
    id: 2,
    title: 'Upgrade to Business',
    type: 'banner',
  }),
);

export const titledItem = component(
  'TitledItem',
  object(
    { id, title, type: text('Kind of item, as the operator named it.') },
    'A flow, a banner or a spotlight.',
    { id: 4, title: 'Welcome tour', type: 'flow' },
  ),
);

export const propertyItem = component(
  'Property',
  object(
    {
      id,
      type: choice(['user_property', 'company_property', 'event_property'], 'What has the property.'),
      key: text('Name of the property in `metadata`.'),
      display_name: text('Display name, made from the key.'),
      data_type: choice(dataTypes, 'Type of the values. `string` also stands for values of several types.'),
      is_auto_property: flag('True if the service itself maintains the property.'),
    },
    'A property of users, companies or events.',
    {
      id: 9,
      type: 'user_property',
      key: 'signup_date',
      display_name: 'Signup Date',
      data_type: 'date',
      is_auto_property: false,
    },
  ),
);
export type Property = Static<typeof propertyItem.schema>;

export const keyedItem = component(
  'KeyedItem',
  object(
    {
      display_name: text('Display name.'),
      key: text('Key by which exports are filtered.'),
      data_type: text('Kind of item, as the operator named it; `event` for a tracked event.'),
    },
    'An item that is identified by a key.',
    { display_name: 'Report Exported', key: 'report_exported', data_type: 'event' },
  ),
);
