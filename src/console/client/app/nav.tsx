import { signal } from '@preact/signals';
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { consoleRoot, screenHref, session, useAction } from '../lib/api.ts';
import { timeZone } from '../lib/format.ts';
import { chooseEnvironment, signOut } from '../lib/session.ts';
import { ActionButton, Button, Select } from '../ui/controls.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Icon, type IconName } from '../ui/icons.tsx';
import { Problems } from '../ui/page.tsx';
import { navGroups, type Screen, screens } from './screens.ts';

/** Tells whether the page of keys is open. */
const help = signal(false);

/** Links to every screen, the environment, theme and sign-out. Folded away where there is little room. */
export function Nav(): VNode {
  const path = useLocation().path.slice(consoleRoot.length) || '/';
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  return (
    <div class="nav" data-open={isOpen ? '' : undefined}>
      <header class="nav-top">
        <a class="brand" href={screenHref('/')}>
          <Mark />
          sluice
        </a>
        <Environment />
        <button
          type="button"
          class="button button-quiet button-icon nav-toggle"
          aria-expanded={isOpen}
          aria-controls="nav-body"
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'close' : 'menu'} />
          <span class="visually-hidden">Menu</span>
        </button>
      </header>
      <div class="nav-body" id="nav-body">
        <nav aria-label="Screens">
          {navGroups.map((group) => (
            <Group key={group} group={group} path={path} />
          ))}
        </nav>
        <Foot />
      </div>
    </div>
  );
}

interface GroupProps {
  readonly group: (typeof navGroups)[number];
  readonly path: string;
}

function Group({ group, path }: GroupProps): VNode {
  return (
    <>
      {group === '' ? null : <p class="nav-group">{group}</p>}
      <ul>
        {screens.map(({ path: own, nav }) =>
          nav?.group === group ? (
            <li key={own}>
              <a href={screenHref(own)} aria-current={isWithin(path, own) ? 'page' : undefined}>
                <Icon name={nav.icon} />
                {nav.title}
              </a>
            </li>
          ) : null,
        )}
      </ul>
    </>
  );
}

/** Tells whether the path belongs to this entry of the navigation. */
function isWithin(path: string, own: Screen['path']): boolean {
  return path === own || (own !== '/' && path.startsWith(`${own}/`));
}

function Environment(): VNode {
  const { environment = '', environments = [] } = session.value ?? {};
  const [wanted, setWanted] = useState(environment);
  const move = useAction(() => chooseEnvironment(wanted));
  useEffect(() => {
    if (wanted !== environment) void move.run();
  }, [wanted]);
  const options = environments.map((name) => [name, name] as const);
  return (
    <>
      <span class="environment" title="Environment">
        {options.length < 2 ? (
          environment
        ) : (
          <Select label="Environment" value={wanted} options={options} onChange={setWanted} />
        )}
      </span>
      <Problems error={move.error} />
    </>
  );
}

function Foot(): VNode {
  const { version, key_id } = session.value ?? {};
  return (
    <footer class="nav-foot">
      <div class="row">
        <ThemeSwitch />
        <Button
          look="quiet button-icon"
          title="Keyboard (?)"
          onClick={() => {
            help.value = true;
          }}
        >
          <Icon name="keyboard" />
          <span class="visually-hidden">Keyboard</span>
        </Button>
        <ActionButton look="quiet button-icon" title="Sign out" act={signOut}>
          <Icon name="leave" />
          <span class="visually-hidden">Sign out</span>
        </ActionButton>
      </div>
      <p class="nav-small">
        Key <span class="mono">{key_id}</span>
        <br />
        Times: {timeZone}
        <br />
        sluice {version}
      </p>
    </footer>
  );
}

export function Mark(): VNode {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M6 10.5h20M6 16h13M6 21.5h7" />
      <circle cx="24" cy="21" r="3" />
    </svg>
  );
}

const themes: readonly (readonly [theme: string, title: string, icon: IconName])[] = [
  ['', 'As the system', 'screen'],
  ['light', 'Light', 'sun'],
  ['dark', 'Dark', 'moon'],
];

const themeKey = 'sluice-theme';
const theme = signal(localStorage.getItem(themeKey) ?? '');

function choose(wanted: string): void {
  theme.value = wanted;
  localStorage.setItem(themeKey, wanted);
  document.documentElement.dataset['theme'] = wanted;
}

function ThemeSwitch(): VNode {
  return (
    <fieldset class="choices push">
      <legend class="visually-hidden">Theme</legend>
      {themes.map(([each, title, icon]) => (
        <label key={each} title={title}>
          <input type="radio" name="theme" checked={theme.value === each} onChange={() => choose(each)} />
          <span>
            <Icon name={icon} size={14} />
            <span class="visually-hidden">{title}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

const general: readonly (readonly [string, string])[] = [
  ['?', 'this page'],
  ['/', 'to the first filter'],
  ['j  k', 'next and previous row, from anywhere on the page'],
  ['↓  ↑', 'the same, from a row'],
  ['Enter', 'open the row'],
  ['Esc', 'close a dialog'],
];

/** The time after `g` within which the key of a screen counts. */
const sequenceMs = 1_500;

/** Listens for keys that are not typed into a field, and shows the list of keys. */
export function Keys(): ComponentChildren {
  const { route } = useLocation();
  useEffect(() => {
    let goingSince = Number.NEGATIVE_INFINITY;
    const onKeyDown = (event: KeyboardEvent): void => {
      const { key, target, timeStamp } = event;
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(target)) return;
      if (document.querySelector('dialog[open]') !== null) return;
      const isGoing = timeStamp - goingSince < sequenceMs;
      goingSince = key === 'g' ? timeStamp : Number.NEGATIVE_INFINITY;
      if (key === '?') help.value = true;
      else if (isGoing) {
        const screen = screens.find(({ nav }) => nav?.key === key);
        if (screen !== undefined) route(screenHref(screen.path));
      } else if (
        key === '/' ? focusOn('.filters input, .filters select') : 'jk'.includes(key) && focusRow(target)
      )
        event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  const places = screens.flatMap(({ nav }) => (nav ? [[`g ${nav.key}`, nav.title] as const] : []));
  const close = (): void => {
    help.value = false;
  };
  return help.value ? (
    <Dialog title="Keyboard" onClose={close}>
      <dl class="keys">
        {[...general, ...places].map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(/\s+/).map((each) => (
                <kbd key={each}>{each}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  ) : null;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !['radio', 'checkbox', 'button'].includes(target.type);
  return target.matches('textarea, select');
}

/**
 * Gives the focus to the selected row of a list, or to its first; from a button in a row, to that row. Returns false if there
 * is none.
 */
function focusRow(from: EventTarget | null): boolean {
  const here = from instanceof Element ? from : null;
  // On a row, the table handles the keys.
  if (here?.closest('[data-row]') != null) return false;
  const own = here?.closest('tr')?.querySelector<HTMLElement>('[data-row]');
  own?.focus();
  return own != null || focusOn('#main [data-selected] [data-row]') || focusOn('#main [data-row]');
}

/** Returns false if there is none. */
function focusOn(selector: string): boolean {
  const first = document.querySelector<HTMLElement>(selector);
  first?.focus();
  return first !== null;
}
