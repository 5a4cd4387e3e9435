import { render } from 'preact';
import { App } from './app/app.tsx';

/*
 * The client of the console: a page that shows the ledger. It keeps nothing of its own: what it shows comes from the
 * API, and filters, tab and selected row stand in the address. docs/decisions/console.md says how a screen is added.
 *
 * app/      the frame: sign-in, navigation, keys, the list of screens
 * lib/      the API, the session, loading, the address, formats
 * ui/       the parts that screens are made of
 * screens/  one file or folder for each screen, loaded when it is shown
 * styles/   CSS in layers: reset, tokens, base, components, screens
 */

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
