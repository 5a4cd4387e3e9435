import type { FastifyInstance } from 'fastify';
import type { TSchema } from 'typebox';
import type { KeyedItem, KeyedKind, StoredEmbed, StoredSurvey } from '../../catalogue/items/items.ts';
import { tables } from '../../catalogue/items/tables.ts';
import { listFeaturesAndEvents } from '../../catalogue/lookups/list-features-and-events.ts';
import { type ListedProperty, listProperties } from '../../catalogue/lookups/list-properties.ts';
import type { System } from '../../context.ts';
import type { Entity } from '../../domain/entity.ts';
import { MAX_PAGE_BYTES } from '../../domain/limits.ts';
import { environmentId } from '../plugins/auth.ts';
import {
  type EmbedLookup,
  embedItem,
  type KeyedLookup,
  keyedItem,
  type PropertyLookup,
  propertyItem,
  type SurveyLookup,
  surveyItem,
} from '../schemas/lookup-items.ts';
import { type LookupText, lookupSchema } from '../schemas/lookup-schema.ts';
import { PageQuery } from '../schemas/page-query.ts';

interface Lookup extends LookupText {
  readonly item: TSchema;
  read(system: System, environmentId: number): Promise<readonly object[]>;
}

/** By the last part of their path. Bare arrays, in an order that does not change. */
const lookups: Readonly<Record<string, Lookup>> = {
  surveys: {
    operationId: 'listSurveys',
    summary: 'List surveys',
    description: 'The surveys that the operator defined, with their modules, by id.',
    item: surveyItem.ref,
    read: async ({ reader: { db } }, environment) =>
      (await tables.surveys.read(db, environment)).map(renderSurvey),
  },
  embeds: {
    operationId: 'listEmbeds',
    summary: 'List embeds',
    description: 'The banners and cards that the operator defined, by id.',
    item: embedItem.ref,
    read: async ({ reader: { db } }, environment) =>
      (await tables.embeds.read(db, environment)).map(renderEmbed),
  },
  user_properties: {
    operationId: 'listUserProperties',
    summary: 'List user properties',
    description: 'Every property that a user has ever had, by key.',
    item: propertyItem.ref,
    read: readProperties('users', 'user_property'),
  },
  company_properties: {
    operationId: 'listCompanyProperties',
    summary: 'List company properties',
    description: 'Every property that a company has ever had, by key.',
    item: propertyItem.ref,
    read: readProperties('companies', 'company_property'),
  },
  resource_center_modules: {
    operationId: 'listResourceCenterModules',
    summary: 'List resource center modules',
    description: 'The modules of the resource center that the operator defined, by key.',
    item: keyedItem.ref,
    read: readKeyed('resource_center_modules'),
  },
  features_events: {
    operationId: 'listFeaturesAndEvents',
    summary: 'List features and events',
    description:
      'The features that the operator defined, and every name that an event was tracked under, by key. An event with the key of a feature is listed once, as the feature.',
    item: keyedItem.ref,
    read: async ({ reader: { db } }, environment) =>
      (await listFeaturesAndEvents(db, environment)).map(renderKeyed),
  },
  checklists: {
    operationId: 'listChecklists',
    summary: 'List checklists',
    description: 'The checklists that the operator defined, by key.',
    item: keyedItem.ref,
    read: readKeyed('checklists'),
  },
};

/** Clients that page through the segments send these to every lookup; the others are lists of one page. */
const pageParameters = ['limit', 'cursor', 'after_cursor', 'before_cursor'];

/** All lookups but the segments. */
export function listLookups(app: FastifyInstance, system: System): void {
  for (const [name, { item, read, ...text }] of Object.entries(lookups)) {
    const options = {
      config: { scope: 'read', answerBytes: MAX_PAGE_BYTES },
      schema: lookupSchema(text, item),
    } as const;
    app.get(`/api/v1/analytics/exports/lookups/${name}`, options, async (request, reply) => {
      new PageQuery(request.query).allow(...pageParameters).check();
      return reply.send(await read(system, environmentId(request)));
    });
  }
}

function readProperties(entity: Entity, type: PropertyLookup['type']): Lookup['read'] {
  return async ({ reader: { db } }, environment) =>
    (await listProperties(db, environment, entity)).map((property) => renderProperty(property, type));
}

function readKeyed(kind: KeyedKind): Lookup['read'] {
  return async ({ reader: { db } }, environment) =>
    (await tables[kind].read(db, environment)).map(renderKeyed);
}

function renderSurvey({ id, title, platform, modules }: StoredSurvey): SurveyLookup {
  const shown = modules.map(({ id, type, question }, index) => ({ id, order: index + 1, type, question }));
  return { id, title, platform, modules: shown };
}

function renderEmbed({ id, title, type }: StoredEmbed): EmbedLookup {
  return { id, title, type };
}

function renderProperty(
  { id, key, display_name, data_type, is_auto_property }: ListedProperty,
  type: PropertyLookup['type'],
): PropertyLookup {
  return { id, type, key, display_name, data_type, is_auto_property };
}

function renderKeyed({ display_name, key, data_type }: KeyedItem): KeyedLookup {
  return { display_name, key, data_type };
}
