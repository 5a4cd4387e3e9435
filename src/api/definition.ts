import { type Static, Type } from 'typebox';
import { dataTypes } from '../domain/data-type.ts';
import { embedTypes } from '../domain/definitions.ts';
import { choice, component, flag, object, ordinal, text } from './schema.ts';

const id = ordinal('ID of the item. Never reused.');
const title = text('Display name.', 'Quarterly NPS');

const surveyModule = object(
  {
    id,
    order: ordinal('Position in the survey.'),
    type: text('Kind of question, as the operator named it.', 'nps'),
    question: text('The question.', 'How likely are you to recommend us?'),
  },
  'One question of a survey.',
);

export const surveyItem = component(
  'Survey',
  object(
    {
      id,
      title,
      platform: text('Where the survey is shown, as the operator named it.', 'web'),
      modules: Type.Array(surveyModule, { description: 'The questions, in order.' }),
    },
    'A survey and its questions.',
  ),
);

export const embedItem = component(
  'Embed',
  object({ id, title, type: choice(embedTypes, 'Kind of embed.') }, 'A banner or a card.'),
);

export const titledItem = component(
  'TitledItem',
  object(
    { id, title, type: text('Kind of item, as the operator named it.', 'flow') },
    'A flow, a banner or a spotlight.',
  ),
);

export const propertyItem = component(
  'Property',
  object(
    {
      id,
      type: choice(['user_property', 'company_property', 'event_property'], 'What has the property.'),
      key: text('Name of the property in `metadata`.', 'signup_date'),
      display_name: text('Display name, made from the key.', 'Signup Date'),
      data_type: choice(dataTypes, 'Type of the values. `string` also stands for values of several types.'),
      is_auto_property: flag('True if the service itself maintains the property.'),
    },
    'A property of users, companies or events.',
  ),
);
export type Property = Static<typeof propertyItem.schema>;

export const keyedItem = component(
  'KeyedItem',
  object(
    {
      display_name: text('Display name.', 'Report Exported'),
      key: text('Key by which exports are filtered.', 'report_exported'),
      data_type: text('Kind of item, as the operator named it; `event` for a tracked event.', 'event'),
    },
    'An item that is identified by a key.',
  ),
);
