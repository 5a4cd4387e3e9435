import type { VNode } from 'preact';
import type { Query } from '../../../console/client/lib/address.ts';
import { formatCount, visibleText } from '../../../console/client/lib/format.ts';
import { FilterText, type Options, SelectField } from '../../../console/client/ui/controls.tsx';
import { groupedPresets, presetTitles } from '../../../domain/source.ts';
import { givenOptions, type Inspected, listOf } from './inspection.ts';

export function headerText(line: number | null): string {
  return line === null ? 'none; columns are numbered' : `line ${formatCount(line)}`;
}

const encodings: Options = [
  ...['utf-8', 'utf-16le', 'utf-16be', 'windows-1250', 'windows-1251', 'windows-1252', 'windows-1253'],
  ...['windows-1254', 'windows-1255', 'windows-1256', 'windows-1257', 'windows-874', 'iso-8859-2'],
  ...['iso-8859-5', 'iso-8859-15', 'koi8-r', 'ibm866', 'macintosh', 'shift_jis', 'euc-jp', 'euc-kr'],
  ...['gb18030', 'big5'],
].map((name) => [name, name]);
const delimiters: Options = [
  ['comma', 'Comma ,'],
  ['semicolon', 'Semicolon ;'],
  ['tab', 'Tab ␉'],
  ['pipe', 'Pipe |'],
  ['space', 'Space'],
  ['blanks', 'Spaces, any number'],
];
export function delimiterText(delimiter: string): string {
  const name = delimiters.find(([, text]) => text.endsWith(` ${delimiter}`))?.[0];
  return name ?? visibleText(delimiter);
}
const quotes: Options = [
  ['"', 'Double "'],
  ["'", "Single '"],
  ['none', 'None'],
];
const headers: Options = [
  ['none', 'None'],
  ...Array.from({ length: 5 }, (_, at) => [String(at + 1), `Record ${at + 1}`] as const),
];

const entityNames = { users: 'users', companies: 'companies', auto: 'mixed' } as const;
const entities: Options = [
  ['users', 'Users'],
  ['companies', 'Companies'],
  ['auto', 'Mixed'],
];

const products = Object.entries(presetTitles);

/**
 * Each of these options may change the columns, so a new value resets the choices made for columns.
 */
function controlsOf(query: Query) {
  const choose = (name: string) => (value: string) =>
    query.set({ [name]: value, map: undefined, types: undefined });
  const choice = (name: string, label: string, none: string, options: Options) => (
    <SelectField
      label={label}
      value={query.get(name)}
      options={[['', none], ...options]}
      onChange={choose(name)}
    />
  );
  const detected = (name: string, label: string, seen: string | null | undefined, options: Options) =>
    choice(
      name,
      label,
      query.get(name) === '' && seen != null ? `Detected: ${seen}` : 'As detected',
      options,
    );
  return { choose, choice, detected };
}

export function Dialect({ query, inspection: { read_as: readAs } }: Inspected): VNode {
  const { choose, choice, detected } = controlsOf(query);
  const csv = readAs?.csv ?? null;
  const isWorkbook = readAs?.format === 'xlsx' || query.get('sheet') !== '';
  const isText = (readAs === null || readAs.encoding !== null) && !isWorkbook;
  const isTable = csv !== null || readAs === null;
  const sheets = (readAs?.sheets ?? []).map((each) => [each, each] as const);
  return (
    <div class="row filters">
      {isText && detected('encoding', 'Encoding', readAs?.encoding, encodings)}
      {isWorkbook && detected('sheet', 'Sheet', readAs?.sheet, sheets)}
      {isText && isTable && (
        <>
          {detected('delimiter', 'Delimiter', csv && visibleText(csv.delimiter), delimiters)}
          {detected('quote', 'Quote', csv && (csv.quote || 'none'), quotes)}
        </>
      )}
      {isTable && (
        <>
          {detected('header', 'Header', csv && headerText(csv.header_line), headers)}
          {choice('ragged', 'Short records', 'Are refused', [['pad', 'Are padded with empty cells']])}
          <FilterText
            label="Empty values"
            value={listOf(query, 'null').join(', ')}
            placeholder="NULL, N/A"
            onChange={(text) => choose('null')(nullsIn(text))}
          />
        </>
      )}
    </div>
  );
}

export function Meaning({ query, inspection: { preset, entity } }: Inspected): VNode {
  const { choose, choice, detected } = controlsOf(query);
  return (
    <div class="row filters">
      {detected('entity', 'Records', entity && entityNames[entity], entities)}
      {detected('preset', 'Export of', preset && presetTitles[preset], products)}
      {groupedPresets.has(preset) && (
        <FilterText
          label="Groups that are companies"
          value={query.get('company_from')}
          placeholder="company, organization, account"
          onChange={choose('company_from')}
        />
      )}
      {!givenOptions.some(({ decides }) => decides(query)) &&
        choice('existing', 'Values that profiles have', 'Are replaced', [['keep', 'Stay']])}
      {givenOptions.map(({ Control }, at) => (
        <Control key={at} query={query} />
      ))}
    </div>
  );
}

function nullsIn(text: string): string {
  const nulls = text.split(',').flatMap((each) => each.trim() || []);
  return nulls.length === 0 ? '' : JSON.stringify(nulls);
}
