import type { Config } from '../config.ts';
import type { Load } from '../domain/load.ts';
import { renderLoadListItem } from '../load/render-load.ts';
import { linkBase } from './link-base.ts';
import type { Terminal } from './terminal.ts';

/** A load that a command has just acted on: the record for scripts, a sentence for a person. */
export function printChanged(
  terminal: Terminal,
  load: Load,
  config: Config,
  json: boolean,
  sentence: string,
): void {
  if (json) terminal.json(renderLoadListItem(load, linkBase(config)));
  else terminal.print(sentence);
}
