import type { KeyedItem, StoredEmbed, StoredSurvey } from '../catalogue/items/items.ts';
import type { ListedProperty } from '../catalogue/lookups/list-properties.ts';
import type { EmbedLookup, KeyedLookup, PropertyLookup, SurveyLookup } from './schemas/lookup-items.ts';

export function renderSurvey({ id, title, platform, modules }: StoredSurvey): SurveyLookup {
  const shown = modules.map(({ id, type, question }, index) => ({ id, order: index + 1, type, question }));
  return { id, title, platform, modules: shown };
}

export function renderEmbed({ id, title, type }: StoredEmbed): EmbedLookup {
  return { id, title, type };
}

export function renderProperty(
  { id, key, display_name, data_type, is_auto_property }: ListedProperty,
  type: PropertyLookup['type'],
): PropertyLookup {
  return { id, type, key, display_name, data_type, is_auto_property };
}

export function renderKeyed({ display_name, key, data_type }: KeyedItem): KeyedLookup {
  return { display_name, key, data_type };
}
