import { type Dataset, datasets } from '../domain/export.ts';

const datasetOf: ReadonlyMap<string, Dataset> = new Map([
  ['identify_user', 'users'],
  ['users', 'users'],
  ['identify_company', 'companies'],
  ['companies', 'companies'],
  ['track', 'events'],
  ['events', 'events'],
]);

export interface Selection {
  readonly datasets: readonly Dataset[];
  /** Empty: all events, if events are among the datasets. */
  readonly eventNames: readonly string[];
}

/** What `event_type` selects. Files are chosen by their names; any other value is an event, and chooses the events file. */
export function selectEvents(eventTypes: readonly string[]): Selection {
  if (eventTypes.length === 0) return { datasets, eventNames: [] };
  const chosen = new Set(eventTypes.map((type) => datasetOf.get(type) ?? 'events'));
  const isAll = eventTypes.some((type) => datasetOf.get(type) === 'events');
  return {
    datasets: datasets.filter((dataset) => chosen.has(dataset)),
    eventNames: isAll ? [] : [...new Set(namesAmong(eventTypes))],
  };
}

/** Those that must be known names or keys of events. */
export function namesAmong(eventTypes: readonly string[]): string[] {
  return eventTypes.filter((type) => !datasetOf.has(type));
}
