"use strict";

// Builds the form from the service's own description; nothing comes from elsewhere.
const element = (id) => document.getElementById(id);
let operations = [];

function example(schema, components) {
  if (schema.$ref) return example(components[schema.$ref.split("/").pop()], components);
  if (schema.type === "array") return [example(schema.items, components)];
  if (schema.type !== "object") return null;
  const needed = new Set(schema.required || []);
  if (schema.if) needed.add("text");
  return Object.fromEntries(Object.entries(schema.properties).filter(([name]) => needed.has(name)).map(
    ([name, member]) => [name, { language: "en", text: "Write the story here." }[name] ?? example(member, components)]));
}

function show() {
  const { named, query, body } = operations[element("operation").selectedIndex];
  element("id-label").hidden = !named;
  element("named").textContent = named;
  element("query-label").hidden = !query.length;
  element("members").textContent = query.join(", ");
  element("query").value = "";
  element("body-label").hidden = body === null;
  element("body").value = body === null ? "" : JSON.stringify(body, null, 2);
}

async function send(event) {
  event.preventDefault();
  const { path, named, method, body } = operations[element("operation").selectedIndex];
  const headers = { "Content-Type": "application/json" };
  if (element("token").value) headers.Authorization = `Bearer ${element("token").value}`;
  element("status").textContent = "Waiting …";
  // Browsers take . and .. for steps between folders however they are written; a space is no part of an id.
  const listed = encodeURIComponent(element("id").value).replace(/^\.{1,2}$/, "%20$&");
  const query = element("query").value && `?${element("query").value}`;
  const address = path.replace(`{${named}}`, () => listed) + query;
  try {
    const response = await fetch(address, { method, headers, body: body === null ? undefined : element("body").value });
    element("answer").textContent = JSON.stringify(await response.json(), null, 2);
    element("status").textContent = `${response.status}, request ${response.headers.get("X-Request-ID")}`;
  } catch (error) {
    element("status").textContent = `No answer: ${error.message}`;
  }
}

async function load() {
  const description = await (await fetch("/openapi.json")).json();
  element("about").textContent = `${description.info.description} Version ${description.info.version}.`;
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const schema = operation.requestBody?.content["application/json"].schema;
      const body = schema ? example(schema, description.components.schemas) : null;
      const named = path.match(/{(\w+)}/)?.[1] ?? "";
      const query = (operation.parameters ?? []).filter((parameter) => parameter.in === "query");
      operations.push({ path, named, method: method.toUpperCase(), query: query.map((member) => member.name), body });
      element("operation").add(new Option(`${method.toUpperCase()} ${path}: ${operation.summary}`));
    }
  }
  element("operation").addEventListener("change", show);
  element("call").addEventListener("submit", send);
  show();
}

load();
