import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { formatCount, plural } from '../../lib/format.ts';
import { type Mended, type Reject, replaceIn } from './reject-record.ts';

interface Props {
  readonly rejects: readonly Reject[];
  readonly columns: readonly string[];
  readonly mended: Mended;
  readonly onChange: (mended: Mended) => void;
}

/** One text by another, in one column of the records that are shown. The number stands on the button. */
export function Replace({ rejects, columns, mended, onChange }: Props): VNode {
  const [column, setColumn] = useState(0);
  const [find, setFind] = useState('');
  const [by, setBy] = useState('');
  const next = replaceIn(rejects, columns, mended, { column, find, by });
  const count = [...next].filter(([row, record]) => mended.get(row) !== record).length;
  return (
    <form
      class="filters replace"
      onSubmit={(event) => {
        event.preventDefault();
        onChange(next);
      }}
    >
      <label class="filter">
        <span class="field-label">Replace in</span>
        <select value={column} onChange={(event) => setColumn(Number(event.currentTarget.value))}>
          {columns.map((name, at) => (
            <option key={`${at} ${name}`} value={at}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <Text label="What stands there" value={find} placeholder="empty cells" onInput={setFind} />
      <Text label="By" value={by} placeholder="nothing" onInput={setBy} />
      <button type="submit" class="button" disabled={count === 0}>
        Replace in {plural(count, 'record')}
      </button>
      <span class="hint">of the {formatCount(rejects.length)} that are shown</span>
    </form>
  );
}

interface TextProps {
  readonly label: string;
  readonly value: string;
  readonly placeholder: string;
  readonly onInput: (value: string) => void;
}

function Text({ label, value, placeholder, onInput }: TextProps): VNode {
  return (
    <label class="filter">
      <span class="field-label">{label}</span>
      <input
        type="text"
        value={value}
        placeholder={placeholder}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
