/** What surrounds every page: the navigation, the viewer's account, and the page that the address names. */

import { useEffect, useState } from "preact/hooks";
import { ErrorBoundary, LocationProvider, Route, Router, useLocation } from "preact-iso";
import { KeyRound, Menu, X } from "lucide-preact";

import { Problem, SIGNED_OUT } from "./api/client";
import { useAct, useRead } from "./api/use";
import { AREAS, BASE } from "./pages";
import { readMe, signIn, signOut, Signed, useMe } from "./session";
import { chooseLanguage, language, languages, t } from "./text";
import { chooseTheme, theme, type Theme } from "./theme";
import { Button, IconButton, LinkButton, Select, TextField } from "./ui/controls";
import { ToastHost } from "./ui/dialog";
import { Empty, Loading, Page, ProblemNote } from "./ui/layout";

function SignIn(props: { ended: boolean; done: () => void }) {
  const [key, setKey] = useState("");
  const act = useAct(async () => {
    await signIn(key.trim());
    props.done();
  });
  useEffect(() => {
    document.title = `${t("shell.sign_in")} · Phronesis`;
  }, []);
  return (
    <main class="sign-in">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          void act.run();
        }}
      >
        <img src={`${BASE}/assets/icon.svg`} alt="" width="40" height="40" />
        <h1>Phronesis</h1>
        {props.ended && <p class="note">{t("shell.signed_out")}</p>}
        {act.problem && <ProblemNote problem={act.problem} />}
        <TextField
          label={t("shell.key")}
          hint={t("shell.key_hint")}
          type="password"
          autocomplete="off"
          placeholder="phr_…"
          required
          autofocus
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        <Button kind="primary" type="submit" busy={act.running} icon={<KeyRound aria-hidden="true" />}>
          {t("shell.sign_in")}
        </Button>
        <LanguageChoice />
      </form>
    </main>
  );
}

function LanguageChoice() {
  const known = Object.keys(languages());
  const named = (tag: string) => new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag;
  return (
    <Select
      label={t("shell.language")}
      value={language()}
      options={known.map((tag) => ({ value: tag, label: named(tag) }))}
      onChange={(event) => chooseLanguage(event.currentTarget.value)}
    />
  );
}

function Navigation(props: { open: boolean; close: () => void }) {
  const { path } = useLocation();
  const me = useMe();
  return (
    <nav id="navigation" class={props.open ? "sidebar open" : "sidebar"} aria-label={t("shell.navigation")}>
      <ul>
        {AREAS.filter((area) => area.open?.(me) ?? true).map((area) => {
          const href = BASE + area.path;
          const here = area.path ? path === href || path.startsWith(`${href}/`) : path === BASE || path === `${BASE}/`;
          return (
            <li key={href}>
              <a href={href} aria-current={here ? "page" : undefined} onClick={props.close}>
                <area.icon aria-hidden="true" />
                {t(area.title)}
              </a>
            </li>
          );
        })}
      </ul>
      <Account />
    </nav>
  );
}

function Account() {
  const me = useMe();
  const themes: Theme[] = ["system", "light", "dark"];
  const leave = useAct(async (everywhere: boolean) => {
    await signOut(everywhere);
    location.assign(BASE);
  });
  return (
    <details class="account">
      <summary>
        <span class="who">{me.user}</span>
        <span class="note">{`${me.tenant} · ${me.role}`}</span>
      </summary>
      <div class="account-box">
        <Select
          label={t("shell.theme")}
          value={theme()}
          options={themes.map((each) => ({ value: each, label: t(`shell.theme_${each}`) }))}
          onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}
        />
        <LanguageChoice />
        <Button busy={leave.running} onClick={() => void leave.run(false)}>
          {t("shell.sign_out")}
        </Button>
        <Button kind="quiet" busy={leave.running} onClick={() => void leave.run(true)}>
          {t("shell.sign_out_everywhere")}
        </Button>
        {leave.problem && <ProblemNote problem={leave.problem} />}
      </div>
    </details>
  );
}

function Missing() {
  return (
    <Page title={t("shell.not_found")}>
      <Empty title={t("shell.not_found")}>
        <LinkButton href={BASE}>{t("shell.to_home")}</LinkButton>
      </Empty>
    </Page>
  );
}

function Frame() {
  const [open, setOpen] = useState(false);
  return (
    <div class="frame">
      <a class="skip" href="#content">
        {t("shell.skip")}
      </a>
      <header class="topbar">
        <IconButton
          class="menu"
          label={t("shell.menu")}
          aria-expanded={open}
          aria-controls="navigation"
          icon={open ? <X aria-hidden="true" /> : <Menu aria-hidden="true" />}
          onClick={() => setOpen(!open)}
        />
        <a class="brand" href={BASE}>
          <img src={`${BASE}/assets/icon.svg`} alt="" width="24" height="24" />
          Phronesis
        </a>
      </header>
      <Navigation open={open} close={() => setOpen(false)} />
      <main id="content" tabIndex={-1}>
        <ErrorBoundary>
          <Router>
            {AREAS.map((area) => (
              // One route for an area and all below it, so that going from one to the other keeps what the page holds.
              <Route key={area.path} path={area.path ? `${BASE}${area.path}/:rest*` : BASE} component={area.page} />
            ))}
            <Route default component={Missing} />
          </Router>
        </ErrorBoundary>
      </main>
    </div>
  );
}

export function App() {
  const me = useRead(readMe, []);
  const [ended, setEnded] = useState(false);
  useEffect(() => {
    const end = () => setEnded(true);
    window.addEventListener(SIGNED_OUT, end);
    return () => window.removeEventListener(SIGNED_OUT, end);
  }, []);
  if (me.loading && !me.data) return <Loading />;
  if ((ended || !me.data) && (!me.problem || me.problem.status === 401)) {
    return (
      <SignIn
        ended={!!me.data}
        done={() => {
          setEnded(false);
          me.reload();
        }}
      />
    );
  }
  if (!me.data) return <ProblemNote problem={me.problem ?? new Problem(0, "internal", "")} retry={me.reload} />;
  return (
    <Signed.Provider value={me.data}>
      <LocationProvider scope={BASE}>
        <ToastHost>
          <Frame />
        </ToastHost>
      </LocationProvider>
    </Signed.Provider>
  );
}
